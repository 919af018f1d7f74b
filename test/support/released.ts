/**
 * Stored formats against the files that releases have written. Each format has samples, written by the product's own code:
 * `released/<name>-<revision>.json` beside the test holds them as the release wrote them, with their meaning. A changed format
 * fails until it has a new revision, and every released file must still be read with the same meaning.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

export interface StoredFormat {
  readonly name: string;
  /** Number of the newest released file; rises by one with each change. */
  readonly revision: number;
  /** Place of the version that the files carry, for the message of a failure; null for a format without one. */
  readonly version: string | null;
  /** Schemas of the content, by name; a change of one is a change of the format, also where no sample shows it. */
  readonly shapes?: Readonly<Record<string, unknown>>;
  /** Writes samples with every member into an empty directory. Equal at each call. */
  write(directory: string): void | Promise<void>;
  /** Reads such a directory, as today's program does, and returns the meaning. */
  read(directory: string): unknown;
}

interface Released {
  readonly shapes: Readonly<Record<string, string>>;
  /** Contents by file name: text, or bytes that are no text. */
  readonly files: Readonly<Record<string, string | { readonly base64: string }>>;
  readonly meaning: unknown;
}

/** A type with every optional member, so that a sample of it does not compile without a new one. */
export type Complete<T> = T extends string | number | boolean | null | undefined
  ? T
  : { -readonly [K in keyof T]-?: Complete<T[K]> };

/** Defines the tests of formats. @param testFile URL of the test file */
export function describeReleased(testFile: string, formats: readonly StoredFormat[]): void {
  const directory = join(dirname(fileURLToPath(testFile)), 'released');
  const fileOf = (format: StoredFormat, revision: number) => join(directory, `${format.name}-${revision}.json`);

  describe.each(formats)('the stored format $name', (format) => {
    const revisions = Array.from({ length: format.revision }, (_, index) => index + 1);

    it('is as it was released', async () => {
      const file = fileOf(format, format.revision);
      const { shapes, files, meaning } = await releaseOf(format);
      if (!existsSync(file) && process.env.UPDATE_GOLDENS === '1') {
        mkdirSync(directory, { recursive: true });
        writeFileSync(file, `${JSON.stringify({ shapes, files, meaning }, null, 1)}\n`);
      }
      const released = existsSync(file) ? readReleased(file) : { shapes: {}, files: {} };
      expect({ shapes, files }, adviceFor(format)).toEqual({ shapes: released.shapes, files: released.files });
    });

    it.each(revisions)('is read as released in revision %i', async (revision) => {
      const { files, meaning } = readReleased(fileOf(format, revision));
      const place = emptyDirectory();
      for (const [name, content] of Object.entries(files)) {
        const bytes = typeof content === 'string' ? content : Buffer.from(content.base64, 'base64');
        mkdirSync(dirname(join(place, name)), { recursive: true, mode: 0o700 });
        writeFileSync(join(place, name), bytes, { mode: 0o600 });
      }
      const advice = `files of revision ${revision} are read differently now: keep their reader, or convert them when they are opened`;
      expect(plain(await format.read(place)), advice).toMatchObject(meaning as object);
    });
  });

  it('released files all belong to a format', () => {
    const known = formats.flatMap((format) =>
      Array.from({ length: format.revision }, (_, index) => fileOf(format, index + 1)),
    );
    expect(
      readdirSync(directory)
        .map((name) => join(directory, name))
        .sort(),
    ).toEqual(known.sort());
  });
}

const adviceFor = ({ name, revision, version }: StoredFormat): string =>
  [
    `the stored format ${name} is not that of its revision ${revision}, which releases have written to users' disks.`,
    version === null
      ? 'Its files carry no version: a reader tells old ones only by their members, and an older program reads the new ones too.'
      : `Raise the version (${version}) when an older program would misread the new form.`,
    `Keep the reader of the old form. Then raise its revision in this test to ${revision + 1} and run it with UPDATE_GOLDENS=1,`,
    `which adds released/${name}-${revision + 1}.json; the files of earlier revisions stay.`,
  ].join('\n');

async function releaseOf(format: StoredFormat): Promise<Released> {
  const place = emptyDirectory();
  await format.write(place);
  const files = Object.fromEntries(namesIn(place).map((name) => [name, textOrBytes(readFileSync(join(place, name)))]));
  const shapes = Object.entries(format.shapes ?? {}).map(([name, schema]) => [name, digestOf(schema)]);
  return { shapes: Object.fromEntries(shapes), files, meaning: plain(await format.read(place)) };
}

const namesIn = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1))
    .sort();

function textOrBytes(bytes: Buffer): Released['files'][string] {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !text.includes('\0') ? text : { base64: bytes.toString('base64') };
}

const readReleased = (file: string): Released => JSON.parse(readFileSync(file, 'utf8'));

/** Returns the value as JSON holds it. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Members of schemas that say nothing about the content. */
const PROSE = ['description', 'title', 'examples'];

const digestOf = (schema: unknown): string =>
  createHash('sha256')
    .update(
      JSON.stringify(schema, (key, value) => (PROSE.includes(key) && typeof value !== 'object' ? undefined : value)),
    )
    .digest('hex')
    .slice(0, 16);

function emptyDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'orch-released-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
