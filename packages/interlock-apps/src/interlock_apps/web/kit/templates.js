// @ts-check
// URI templates (RFC 6570): the names of their variables.

const VARIABLE = /\{([+#./;?&]?)([^{}]+)\}/g;

/** The names of a template's variables. @param {string} template */
export const variables = (template) => [
  ...new Set(
    [...template.matchAll(VARIABLE)].flatMap((found) =>
      found[2].split(",").map((name) => name.replace(/(?:\*|:\d+)$/, "").trim()),
    ),
  ),
];
