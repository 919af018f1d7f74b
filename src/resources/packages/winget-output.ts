/** What `winget` writes: the file of an export, and the table of a package's versions. */
import { recordsOf } from '../json-answer.js';

/** Identifiers and versions in an export, by the identifier in one case. */
export function parseWingetExport(text: string): ReadonlyMap<string, string> | null {
  const found = new Map<string, string>();
  const root = parsed(text);
  if (root === null) return null;
  for (const source of recordsOf(root.Sources)) {
    for (const { PackageIdentifier: id, Version: version } of recordsOf(source.Packages)) {
      if (typeof id === 'string') found.set(id.toLowerCase(), typeof version === 'string' ? version : '');
    }
  }
  return found;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const [root] = recordsOf(JSON.parse(text.replace(/^\ufeff/, '')));
    return root ?? null;
  } catch {
    return null;
  }
}

/** The versions below the line of dashes of `winget show --versions`, the newest first. */
export function parseWingetVersions(output: string): readonly string[] {
  // What turns while it waits is written over with carriage returns.
  const lines = output.split(/\r?\n/).map((line) => line.slice(line.lastIndexOf('\r') + 1).trim());
  const dashes = lines.findIndex((line) => /^-{3,}$/.test(line));
  return dashes === -1 ? [] : lines.slice(dashes + 1).filter((line) => line !== '');
}

/** Less than zero when `one` is the older version: numbers by value, all else as text. */
export function compareWingetVersions(one: string, other: string): number {
  const [left, right] = [partsOf(one), partsOf(other)];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const [a, b] = [left[at] ?? EMPTY, right[at] ?? EMPTY];
    if (a.number !== b.number) return a.number < b.number ? -1 : 1;
    // 1.0-beta comes before 1.0.
    if (a.text !== b.text) return a.text === '' ? 1 : b.text === '' ? -1 : a.text < b.text ? -1 : 1;
  }
  return 0;
}

const EMPTY = { number: 0, text: '' };

const partsOf = (version: string): readonly { readonly number: number; readonly text: string }[] =>
  version
    .toLowerCase()
    .replace(/^v(?=\d)/, '')
    .split('.')
    .map((part) => {
      const [, digits = '', text = ''] = /^\s*(\d*)(.*?)\s*$/.exec(part) ?? [];
      return { number: Number(digits), text };
    });
