/** The order of versions (Semantic Versioning 2.0.0, section 11). */

/** Compares two versions: negative when `a` is older than `b`, positive when it is newer, 0 for equal ones. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [splitVersion(a), splitVersion(b)];
  for (const [index, number] of left.numbers.entries()) {
    const difference = number - (right.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  if (left.labels.length === 0 || right.labels.length === 0) return right.labels.length - left.labels.length;
  for (const [index, label] of left.labels.entries()) {
    const other = right.labels[index];
    if (other === undefined) return 1;
    const difference = compareLabels(label, other);
    if (difference !== 0) return difference;
  }
  return left.labels.length - right.labels.length;
}

/** Splits `1.2.3-rc.1` into its numbers and the labels of a pre-release. */
function splitVersion(version: string): { readonly numbers: readonly number[]; readonly labels: readonly string[] } {
  const dash = version.indexOf('-');
  const numbers = (dash === -1 ? version : version.slice(0, dash)).split('.').map(Number);
  return { numbers, labels: dash === -1 ? [] : version.slice(dash + 1).split('.') };
}

/** Numbers are older than words; numbers compare by value, words by their characters. */
function compareLabels(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumber && isOtherNumber) return Number(a) - Number(b);
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return a < b ? -1 : Number(a > b);
}
