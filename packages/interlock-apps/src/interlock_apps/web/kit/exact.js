// @ts-check
// JSON without rounding: numbers that JavaScript cannot hold keep their digits.

/** Digits that every double holds. */
const DIGITS = 15;

const J = /** @type {any} */ (JSON);

/**
 * Whether a number has to keep its digits.
 * @param {number} value
 * @param {string} source
 */
function isRounded(value, source) {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return true;
  if (/^-?\d+$/.test(source)) return false;
  const digits = source.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "");
  return digits.length > DIGITS;
}

/**
 * Parse JSON. A number that would be rounded becomes an object that `JSON.stringify` writes with
 * the same digits. Browsers without `JSON.rawJSON` round it.
 * @param {string} text
 * @returns {any}
 */
export function parseExact(text) {
  if (!J.rawJSON) return JSON.parse(text);
  return J.parse(text, (_, value, { source }) =>
    typeof value === "number" && isRounded(value, source) ? J.rawJSON(source) : value,
  );
}
