// @ts-check
// Untrusted text in a message: the host puts it between lines with a mark, for the model. The page
// shows the person what it is instead.

const MARKED = new RegExp(
  [
    String.raw`\[\[(data-[0-9a-f]{8}) ([^\]\n]*(?:\](?!\])[^\]\n]*)*)\]\]\n`, // its first line
    String.raw`([^]*?)`, // the text of the server
    String.raw`\n\[\[/\1\]\](?:\n\(Page 1 of [^\n]*\))?`, // its last line
  ].join(""),
  "g",
);

/**
 * Split a text at its marks; `what` is the host's description of a marked piece.
 * @param {string} text @returns {{text: string, what?: string}[]}
 */
export function splitAtMarkers(text) {
  const pieces = /** @type {{text: string, what?: string}[]} */ ([]);
  let end = 0;
  const say = (piece) =>
    piece.trim() &&
    pieces.push({ text: piece.trim() === piece ? piece : piece.replace(/^\n+|\n+$/g, "") });
  for (const found of text.matchAll(MARKED)) {
    say(text.slice(end, found.index));
    pieces.push({ text: found[3], what: found[2] });
    end = (found.index ?? 0) + found[0].length;
  }
  say(text.slice(end));
  return pieces;
}

/** A text without its marked pieces. @param {string} text */
export const withoutMarked = (text) =>
  splitAtMarkers(text)
    .filter((piece) => !piece.what)
    .map((piece) => piece.text)
    .join("\n");
