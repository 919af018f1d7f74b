/** Reads an archive from its beginning to its end, with bounded memory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fstatSync, readSync } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { ReadEntry } from 'tar';
import { Parser } from 'tar/parse';
import { fromFdPromise, type Entry as ZipEntry, type ZipFile } from 'yauzl';
import { Fault, isFault, messageOf } from '../../../kernel/fault.js';
import { type ArchiveFormat, DECOMPRESSORS } from '../../../resources/archive/format.js';
import { environmentOf, findProgram } from '../launch.js';
import { type RawEntry, refused, UnpackedMeter } from './archive-tree.js';

/** Takes the content of one file. */
export interface ContentSink {
  write(bytes: Buffer): void;
  end(): void;
}

export interface ArchiveReader {
  /** Takes an entry; returns where its content goes, or null for nowhere. Throws a Fault to refuse it. */
  entry(raw: RawEntry): ContentSink | null;
  /** Called between two parts of the archive. May reject to end the reading. */
  pause(): Promise<void>;
}

export interface OpenArchive {
  /** Open file; its position is the beginning. Owned by the caller. */
  readonly descriptor: number;
  readonly format: ArchiveFormat;
}

/** Rejects with `archive_refused`, with `command_missing` without a needed program, and with what `reader` throws. */
export async function readArchive(archive: OpenArchive, reader: ArchiveReader): Promise<void> {
  const meter = new UnpackedMeter(fstatSync(archive.descriptor).size);
  const own = new OwnReader(reader);
  try {
    await (archive.format === 'zip' ? readZip(archive.descriptor, meter, own) : readPacked(archive, meter, own));
  } catch (error) {
    // A full disk says nothing about the archive.
    if (own.failure !== null) throw own.failure.error;
    throw isFault(error) ? error : refused(`it is no ${archive.format} that can be read: ${messageOf(error)}`, error);
  }
}

/** Remembers what the reader throws, which the libraries would pass on as a mistake of the archive. */
class OwnReader implements ArchiveReader {
  private readonly reader: ArchiveReader;
  failure: { readonly error: unknown } | null = null;

  constructor(reader: ArchiveReader) {
    this.reader = reader;
  }

  entry(raw: RawEntry): ContentSink | null {
    const sink = this.attempt(() => this.reader.entry(raw));
    if (sink === null) return null;
    return {
      write: (bytes) => this.attempt(() => sink.write(bytes)),
      end: () => this.attempt(() => sink.end()),
    };
  }

  async pause(): Promise<void> {
    try {
      await this.reader.pause();
    } catch (error) {
      this.failure ??= { error };
      throw error;
    }
  }

  private attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.failure ??= { error };
      throw error;
    }
  }
}

async function readPacked(archive: OpenArchive, meter: UnpackedMeter, reader: ArchiveReader): Promise<void> {
  const stream = open(archive);
  try {
    await readTar(stream.pieces, meter, reader);
    await stream.ended();
  } finally {
    stream.close();
  }
}

interface Unpacking {
  readonly pieces: AsyncIterable<Buffer>;
  /** Resolves when the decompression has ended well. */
  ended(): Promise<void>;
  close(): void;
}

function open({ descriptor, format }: OpenArchive): Unpacking {
  const program = DECOMPRESSORS[format];
  if (program !== undefined) return decompress(descriptor, program);
  const file = Readable.from(piecesOf(descriptor));
  const stream = format === 'tar.gz' ? file.pipe(createGunzip()) : file;
  file.on('error', (error) => stream.destroy(error));
  return { pieces: stream, ended: async () => {}, close: () => void [file, stream].map((one) => one.destroy()) };
}

/** Bytes that are read at a time. */
const CHUNK = 64 * 1024;

/** Reads a file without taking over its descriptor, as a stream of files would. */
function* piecesOf(descriptor: number): Iterable<Buffer> {
  for (let at = 0; ; ) {
    const piece = Buffer.allocUnsafe(CHUNK);
    const length = readSync(descriptor, piece, 0, CHUNK, at);
    if (length === 0) return;
    yield piece.subarray(0, length);
    at += length;
  }
}

/** Maximum characters of what a program says. */
const MAX_SAID = 300;

/** Decompresses with a program of the machine, which gets only the open file. */
function decompress(descriptor: number, [name, ...args]: readonly [string, ...string[]]): Unpacking {
  const env = environmentOf({});
  const path = findProgram(name, env);
  if (typeof path !== 'string') {
    throw new Fault('command_missing', `${name} is needed to unpack it, and ${path.message}; install it`);
  }
  const child: ChildProcess = spawn(path, args, { cwd: '/', env, stdio: [descriptor, 'pipe', 'pipe'] });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the streams of the program are missing');
  let said = '';
  stderr.on('data', (bytes: Buffer) => {
    if (said.length < MAX_SAID) said += bytes.toString();
  });
  const end = new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(messageOf(error)));
    child.once('close', (code, signal) => resolve(code === 0 ? null : `${name} ended with ${signal ?? code}`));
  });
  return {
    pieces: stdout,
    ended: async () => {
      const problem = await end;
      const plain = said
        .slice(0, MAX_SAID)
        .replaceAll(/\p{Cc}+/gu, ' ')
        .trim();
      if (problem !== null) throw new Error([problem, plain].filter((part) => part !== '').join(': '));
    },
    close: () => {
      stdout.destroy();
      child.kill('SIGKILL');
    },
  };
}

const TAR_TYPES: Readonly<Record<string, RawEntry['type']>> = {
  File: 'file',
  OldFile: 'file',
  ContiguousFile: 'file',
  Directory: 'directory',
  SymbolicLink: 'symlink',
  Link: 'hard link',
  CharacterDevice: 'character device',
  BlockDevice: 'block device',
  FIFO: 'fifo',
};

/** Bytes of a header of a tar. */
const BLOCK = 512;

/** Everything that the parser tells comes from within `write` and `end`, so the first mistake is thrown after each of them. */
async function readTar(pieces: AsyncIterable<Buffer>, meter: UnpackedMeter, reader: ArchiveReader): Promise<void> {
  let mistake: unknown = null;
  const attempt = (work: () => void): void => {
    if (mistake !== null) return;
    try {
      work();
    } catch (error) {
      mistake = error;
    }
  };
  const parser = new Parser({ strict: true, brotli: false, zstd: false });
  parser.on('error', (error: unknown) => attempt(() => raise(error)));
  parser.on('ignoredEntry', (entry: ReadEntry) =>
    attempt(() => raise(refused(`${JSON.stringify(entry.path)} is of the type ${entry.type}, which is not unpacked`))),
  );
  parser.on('entry', (entry: ReadEntry) => {
    let sink: ContentSink | null = null;
    attempt(() => {
      sink = reader.entry(rawOf(entry));
    });
    entry.on('data', (bytes: Buffer) => attempt(() => sink?.write(bytes)));
    entry.on('end', () => attempt(() => sink?.end()));
  });
  let isFirst = true;
  for await (const piece of whole(pieces)) {
    if (isFirst) refuseOther(piece);
    isFirst = false;
    meter.add(piece.length);
    attempt(() => parser.write(piece));
    if (mistake !== null) throw mistake;
    await reader.pause();
  }
  if (isFirst) throw refused('it is empty');
  attempt(() => parser.end());
  if (mistake !== null) throw mistake;
}

function raise(error: unknown): never {
  throw error;
}

/** Joins the pieces until the first one has a whole header. */
async function* whole(pieces: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let first = Buffer.alloc(0);
  let isFirst = true;
  for await (const piece of pieces) {
    if (!isFirst) {
      yield piece;
      continue;
    }
    first = Buffer.concat([first, piece]);
    if (first.length < BLOCK) continue;
    isFirst = false;
    yield first;
  }
  if (isFirst && first.length > 0) yield first;
}

/** Throws `archive_refused` unless a header with the right checksum is at the beginning; the parser would decompress once more. */
function refuseOther(bytes: Buffer): void {
  const header = bytes.subarray(0, BLOCK);
  if (header.every((byte) => byte === 0)) throw refused('it is empty');
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  const said = Number.parseInt(header.subarray(148, 156).toString('latin1').replaceAll(/[\0 ]/g, ''), 8);
  if (bytes.length < BLOCK || said !== sum) throw refused('it is no tar, or is compressed once more');
}

function rawOf({ path, type, mode, linkpath, size }: ReadEntry): RawEntry {
  const known = TAR_TYPES[type] ?? `${type}`;
  // Some programs write the size of the file of a hard link without its content; the content would be taken for another entry.
  if (known === 'hard link' && size > 0) throw refused(`the hard link ${JSON.stringify(path)} has a content`);
  return { name: path, type: known, mode: mode ?? null, ...(linkpath === undefined ? {} : { target: linkpath }) };
}

/** Maximum bytes of the target of a link. */
const MAX_TARGET = 4096;
/** Systems whose programs write Unix modes into a zip: Unix, and macOS. */
const WITH_MODES: readonly number[] = [3, 19];
const FILE_TYPE = 0o170000;
const ZIP_TYPES: ReadonlyMap<number, RawEntry['type']> = new Map([
  [0o100000, 'file'],
  [0o040000, 'directory'],
  [0o120000, 'symlink'],
  [0o020000, 'character device'],
  [0o060000, 'block device'],
  [0o010000, 'fifo'],
  [0o140000, 'socket'],
]);

async function readZip(descriptor: number, meter: UnpackedMeter, reader: ArchiveReader): Promise<void> {
  const zip = await fromFdPromise(descriptor, { lazyEntries: true, autoClose: false, strictFileNames: true });
  for await (const entry of zip.eachEntry()) {
    await readZipEntry(zip, entry, meter, reader);
    await reader.pause();
  }
}

async function readZipEntry(zip: ZipFile, entry: ZipEntry, meter: UnpackedMeter, reader: ArchiveReader): Promise<void> {
  const { fileName: name } = entry;
  if (entry.isEncrypted()) throw refused(`${JSON.stringify(name)} is encrypted`);
  const attributes = WITH_MODES.includes(entry.versionMadeBy >>> 8) ? entry.externalFileAttributes >>> 16 : 0;
  const bits = attributes & FILE_TYPE;
  const type = bits === 0 ? (name.endsWith('/') ? 'directory' : 'file') : (ZIP_TYPES.get(bits) ?? 'special file');
  if ((type === 'directory') !== name.endsWith('/')) {
    throw refused(`${JSON.stringify(name)} is a ${type} by its type, and something else by its name`);
  }
  const mode = attributes === 0 ? null : attributes & 0o7777;
  if (type === 'symlink') {
    const parts: Buffer[] = [];
    let length = 0;
    await eachPiece(zip, entry, (bytes) => {
      length += bytes.length;
      if (length > MAX_TARGET) throw refused(`the link ${JSON.stringify(name)} is longer than ${MAX_TARGET} bytes`);
      parts.push(bytes);
    });
    reader.entry({ name, type, mode, target: Buffer.concat(parts).toString('utf8') });
    return;
  }
  const sink = reader.entry({ name, type, mode });
  if (type !== 'file') return;
  await eachPiece(zip, entry, async (bytes) => {
    meter.add(bytes.length);
    sink?.write(bytes);
    await reader.pause();
  });
  sink?.end();
}

async function eachPiece(zip: ZipFile, entry: ZipEntry, take: (bytes: Buffer) => void | Promise<void>): Promise<void> {
  const stream = await zip.openReadStreamPromise(entry);
  try {
    for await (const bytes of stream) await take(bytes as Buffer);
  } finally {
    stream.destroy();
  }
}
