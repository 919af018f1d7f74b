/** Blanks and backslashes in /etc/fstab and in the mount tables of the kernel are written as octal numbers. */

export const unescapeOctal = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

export const escapeOctal = (text: string): string =>
  text.replaceAll(/[ \t\n\\#]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
