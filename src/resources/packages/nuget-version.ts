/** Versions as NuGet, and so Chocolatey, compares them. */

/** One to four numbers, then a label, then metadata that does not count. */
export const NUGET_VERSION = /^\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;

/** True when two versions are the same one, such as 1.0 and 1.0.0.0. */
export const isSameNugetVersion = (one: string, other: string): boolean => normalized(one) === normalized(other);

function normalized(version: string): string {
  const [plain = ''] = version.split('+');
  const dash = plain.indexOf('-');
  const numbers = (dash === -1 ? plain : plain.slice(0, dash)).split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  while (numbers.length < 4) numbers.push('0');
  return `${numbers.join('.')}${dash === -1 ? '' : plain.slice(dash).toLowerCase()}`;
}
