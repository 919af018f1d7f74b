/** Archives for tests, also those that no program would make. */
import { gzipSync } from 'node:zlib';
import { Header, type types } from 'tar';

export interface TarEntry {
  readonly name: string;
  /** Type of the entry, by the names of the library [default: File]. */
  readonly type?: types.EntryTypeName;
  readonly mode?: number;
  readonly content?: string | Buffer;
  readonly target?: string;
  /** The letter of the type, for types that the library does not know. */
  readonly letter?: string;
}

const BLOCK = 512;

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);

function headerOf({ name, type = 'File', mode = 0o644, target, letter }: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const header = new Header({ path: name, type, mode, size, uid: 0, gid: 0, mtime: new Date(0) });
  if (target !== undefined) header.linkpath = target;
  header.encode(block);
  // The library writes no name that leads upwards.
  block.fill(0, 0, 100);
  block.write(name, 0, 100);
  if (letter !== undefined) block.write(letter, 156, 1, 'latin1');
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8, 'latin1');
  return block;
}

export function tarOf(...entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '');
    return [headerOf(entry, content.length), padded(content)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

export const tarGzOf = (...entries: readonly TarEntry[]): Buffer => gzipSync(tarOf(...entries));

export interface ZipEntry {
  readonly name: string;
  readonly content?: string;
  /** Mode with the type of the file, as Unix has it; absent for an entry without one. */
  readonly mode?: number;
  /** General purpose flags: 1 for an encrypted entry. */
  readonly flags?: number;
  /** Compression method [default: 0, stored]. */
  readonly method?: number;
}

/** Makes a zip whose entries are stored. */
export function zipOf(...entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const { name, content = '', mode, flags = 0, method = 0 } of entries) {
    // An encrypted entry begins with 12 bytes of its own.
    const bytes = Buffer.from(`${(flags & 1) === 0 ? '' : '.'.repeat(12)}${content}`);
    const path = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags | 0x800, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(Buffer.byteLength(content), 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, path, bytes]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(mode === undefined ? 0 : mode * 0x10000, 6);
    rest.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([20, mode === undefined ? 0 : 3]);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), madeBy, common, rest, path]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
