/** Formats of archives: their names, and the programs of the machine that some of them need. */

export const ARCHIVE_FORMATS = ['tar', 'tar.gz', 'tar.xz', 'tar.bz2', 'tar.zst', 'zip'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];

const ENDINGS: Readonly<Record<string, ArchiveFormat>> = {
  '.tar': 'tar',
  '.tar.gz': 'tar.gz',
  '.tgz': 'tar.gz',
  '.tar.xz': 'tar.xz',
  '.txz': 'tar.xz',
  '.tar.bz2': 'tar.bz2',
  '.tbz2': 'tar.bz2',
  '.tbz': 'tar.bz2',
  '.tar.zst': 'tar.zst',
  '.tzst': 'tar.zst',
  '.zip': 'zip',
};

/** Returns the format that a file name or an address tells by its ending; null when it tells none. */
export function formatOfName(name: string): ArchiveFormat | null {
  const path = /^https?:\/\//i.test(name) ? name.replace(/[?#].*$/s, '') : name;
  const ending = Object.keys(ENDINGS).find((one) => path.toLowerCase().endsWith(one));
  return ending === undefined ? null : (ENDINGS[ending] ?? null);
}

/** Programs that decompress from standard input to standard output; the agent itself reads the other formats. */
export const DECOMPRESSORS: Readonly<Partial<Record<ArchiveFormat, readonly [string, ...string[]]>>> = {
  'tar.xz': ['xz', '--decompress', '--stdout'],
  'tar.bz2': ['bzip2', '--decompress', '--stdout'],
  'tar.zst': ['zstd', '--decompress', '--stdout', '--quiet'],
};
