/** Compares names like Windows, which ignores case. */

/** An unresolved expression, which keeps its case. */
const EXPRESSION = /(\$\{\{.*?\}\})/su;

/** Returns a readable form that is equal exactly for names that Windows considers equal. */
export const foldCase = (text: string): string =>
  text
    .split(EXPRESSION)
    .map((part, at) => (at % 2 === 1 ? part : foldUnits(part)))
    .join('');

/** Folds single UTF-16 units like Windows; a unit whose upper case is longer stays. */
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
