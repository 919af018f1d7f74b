/** Versions of rpm: `epoch:version-release`, and their order. */

interface Evr {
  /** Null when it is not told, which is no epoch in a package and any epoch in what a body asks for. */
  readonly epoch: string | null;
  readonly version: string;
  readonly release: string | null;
}

function parse(text: string): Evr {
  const [, epoch = null, version = '', release = null] = /^(?:(\d+):)?([^-]*)(?:-(.*))?$/.exec(text) ?? [];
  return { epoch, version, release };
}

/** Negative when `one` is older than `other`, positive when it is newer, and 0 when rpm takes them for the same. */
export function compareRpmVersions(one: string, other: string): number {
  const [a, b] = [parse(one), parse(other)];
  return (
    compareParts(a.epoch ?? '0', b.epoch ?? '0') ||
    compareParts(a.version, b.version) ||
    compareParts(a.release ?? '', b.release ?? '')
  );
}

/** True when a package has the version that is asked for, which may leave epoch and release open. */
export function isRpmVersion(asked: string, version: string): boolean {
  const [a, b] = [parse(asked), parse(version)];
  if (a.epoch !== null && compareParts(a.epoch, b.epoch ?? '0') !== 0) return false;
  return a.version === b.version && (a.release === null || a.release === b.release);
}

/** A run of digits or of letters, or one of the signs that have an order of their own. */
const SEGMENT = /\d+|[A-Za-z]+|[~^]/g;

/** As rpm compares: runs of digits and of letters in turn, whatever stands between them. */
function compareParts(one: string, other: string): number {
  const a = one.match(SEGMENT) ?? [];
  const b = other.match(SEGMENT) ?? [];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const order = compareSegments(a[at], b[at]);
    if (order !== 0) return order;
  }
  return 0;
}

/** `~` is older than the end, the end is older than `^`, and `^` is older than anything else. */
const rankOf = (segment: string | undefined): number => {
  if (segment === undefined) return 1;
  if (segment === '~') return 0;
  if (segment === '^') return 2;
  return /\d/.test(segment) ? 4 : 3;
};

function compareSegments(a: string | undefined, b: string | undefined): number {
  const order = rankOf(a) - rankOf(b);
  if (order !== 0 || a === undefined || b === undefined || rankOf(a) < 3) return order;
  if (rankOf(a) === 3) return a < b ? -1 : Number(a > b);
  const [x, y] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  if (x.length !== y.length) return x.length - y.length;
  return x < y ? -1 : Number(x > y);
}
