/** Names as Windows compares them: case does not tell two apart. */

/** What is still to be filled in keeps its case, so that it can be read as what it refers to. */
const EXPRESSION = /(\$\{\{.*?\}\})/su;

/** A form that two names share exactly when Windows takes them for the same; readable, mostly lower case. */
export const foldCase = (text: string): string =>
  text
    .split(EXPRESSION)
    .map((part, at) => (at % 2 === 1 ? part : foldUnits(part)))
    .join('');

/** Windows compares the upper case of single UTF-16 units, so what becomes longer stays as it is. */
function foldUnits(text: string): string {
  let folded = '';
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charAt(at);
    const upper = unit.toUpperCase();
    const same = upper.length === 1 ? upper : unit;
    const lower = same.toLowerCase();
    folded += lower.length === 1 ? lower : same;
  }
  return folded;
}
