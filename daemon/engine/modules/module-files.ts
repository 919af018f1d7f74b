/** Takes, checks and gives out files beside modules. */
import { createHash } from 'node:crypto';
import { FILE_PART_BYTES, type fileRoutes, type StoredFile } from '../../../src/contract/files.js';
import { Fault } from '../../../src/kernel/fault.js';
import { type FileBeside, type FileDigests, isTextPath } from '../../../src/language/files-beside.js';
import { MAX_CONTENT_BYTES } from '../../../src/resources/host.js';
import type { Core } from '../../core/core.js';
import type { HandlersFor } from '../../http/handler.js';
import {
  addFilePart,
  completeFile,
  deleteIncompleteFile,
  deleteUnnamedFiles,
  findFile,
  findFilePart,
  nameFile,
  sizesOfFiles,
} from './module-file-store.js';

/** Files beside a module by path, or the reason why one cannot be used. */
export type AttachedFiles = Readonly<Record<string, FileBeside | string>>;

/** A complete file, read from any byte on. */
export interface OpenedFile {
  /** Bytes. */
  readonly size: number;
  read(from: number): AsyncIterable<Buffer>;
}

/** Milliseconds for which a file is kept that nothing names: its module is still to come, or a saved plan names it. */
const KEPT_MS = 7 * 24 * 3_600_000;

export class ModuleFiles {
  private readonly options: Pick<Core, 'db' | 'uow' | 'clock' | 'ageTime'>;

  constructor(options: ModuleFiles['options']) {
    this.options = options;
  }

  /**
   * Stores the part of a file that begins where the stored ones end, and no other. Returns how much is stored. Throws `invalid_path`,
   * `invalid_body` for a part of a wrong length, and `file_damaged` when the whole has another SHA-256; nothing of it is kept then.
   * @param data base64
   */
  async upload(sha256: string, { size, offset, data }: Part): Promise<StoredFile> {
    const { db, uow, clock } = this.options;
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Fault('invalid_path', '/sha256 must be 64 hex digits in lower case');
    const bytes = Buffer.from(data, 'base64');
    await uow.write(async (tx) => {
      await nameFile(tx, { sha256, size }, clock.now());
      const { received, size: known } = await this.require(tx, sha256);
      if (known !== size) throw invalid(`/size must be ${known}, which an earlier part of the file has said`);
      if (offset !== received || received === size || bytes.length === 0) return;
      const length = Math.min(FILE_PART_BYTES, size - offset);
      if (bytes.length !== length) throw invalid(`/data must have ${length} bytes, and has ${bytes.length}`);
      const part = { position: offset / FILE_PART_BYTES, data: bytes.toString('base64'), received: offset + length };
      await addFilePart(tx, sha256, part);
    });
    const { received, is_complete } = await this.require(db, sha256);
    if (received === size && is_complete === 0) await this.complete(sha256);
    return { sha256, size, received };
  }

  /** Returns the part from `offset` on, at most `FILE_PART_BYTES`. Throws `file_not_found`. */
  async part(sha256: string, offset: number) {
    const opened = await this.open(sha256);
    if (opened === null) throw notFound([sha256]);
    for await (const piece of opened.read(offset)) {
      return { size: opened.size, offset, data: piece.toString('base64') };
    }
    return { size: opened.size, offset, data: '' };
  }

  /** Opens a complete file; null if there is none. */
  async open(sha256: string): Promise<OpenedFile | null> {
    const { db } = this.options;
    const size = (await sizesOfFiles(db, [sha256])).get(sha256);
    if (size === undefined) return null;
    const length = size;
    async function* read(from: number): AsyncGenerator<Buffer> {
      for (let at = from; at < length; ) {
        const position = Math.floor(at / FILE_PART_BYTES);
        const piece = await findFilePart(db, sha256, position);
        if (piece === null) throw new Error(`part ${position} of the file ${sha256} is missing`);
        yield piece.subarray(at - position * FILE_PART_BYTES);
        at = (position + 1) * FILE_PART_BYTES;
      }
    }
    return { size, read };
  }

  /** Returns the files that a module names, with the texts of templates and of lists of directories. Throws `file_not_found` with those that are not stored. */
  async attach(files: FileDigests): Promise<AttachedFiles> {
    const sizes = await sizesOfFiles(this.options.db, Object.values(files));
    const missing = [...new Set(Object.values(files))].filter((sha256) => !sizes.has(sha256));
    if (missing.length > 0) throw notFound(missing);
    const attached: Record<string, FileBeside | string> = {};
    for (const [path, sha256] of Object.entries(files)) {
      const size = sizes.get(sha256) ?? 0;
      attached[path] = isTextPath(path) ? await this.withText({ sha256, size }) : { sha256, size };
    }
    return attached;
  }

  /** Deletes files that nothing has named for a week. */
  async prune(): Promise<void> {
    const { uow, ageTime } = this.options;
    await uow.write((tx) => deleteUnnamedFiles(tx, ageTime() - KEPT_MS));
  }

  private async withText({ sha256, size }: Omit<FileBeside, 'text'>): Promise<FileBeside | string> {
    if (size > MAX_CONTENT_BYTES) return `is larger than ${MAX_CONTENT_BYTES} bytes, the most that a template may have`;
    const opened = await this.open(sha256);
    const pieces: Buffer[] = [];
    for await (const piece of opened?.read(0) ?? []) pieces.push(piece);
    try {
      return { sha256, size, text: new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces)) };
    } catch {
      return 'is not UTF-8 text';
    }
  }

  /** Checks a file whose parts are all stored. Throws `file_damaged`. */
  private async complete(sha256: string): Promise<void> {
    const { db, uow } = this.options;
    const hash = createHash('sha256');
    for (let position = 0; ; position += 1) {
      const piece = await findFilePart(db, sha256, position);
      if (piece === null) break;
      hash.update(piece);
    }
    const isWhole = hash.digest('hex') === sha256;
    await uow.write((tx) => (isWhole ? completeFile(tx, sha256) : deleteIncompleteFile(tx, sha256)));
    if (!isWhole) {
      throw new Fault('file_damaged', 'the parts that were sent have another SHA-256, and are deleted', {
        hint: 'the file has changed while it was read: send it again',
      });
    }
  }

  private async require(db: Parameters<typeof findFile>[0], sha256: string) {
    const row = await findFile(db, sha256);
    if (row === null) throw notFound([sha256]);
    return row;
  }
}

interface Part {
  readonly size: number;
  readonly offset: number;
  readonly data: string;
}

const invalid = (message: string): Fault => new Fault('invalid_body', message);

function notFound(missing: readonly string[]): Fault {
  const [first = '', ...more] = missing;
  const rest = more.length > 0 ? ` and of ${more.length} more` : '';
  return new Fault('file_not_found', `there is no file with the SHA-256 ${first}${rest}`, {
    hint: 'upload it first: PUT /api/v1/files/{sha256}',
    data: { missing: [...missing] },
  });
}

/** HTTP handlers of files beside modules. */
export const fileHandlers = (files: ModuleFiles): HandlersFor<typeof fileRoutes> => ({
  uploadFile: async ({ params, body }) => ({ status: 200, body: await files.upload(params.sha256, body) }),
  getFile: async ({ params, query }) => ({ status: 200, body: await files.part(params.sha256, query.offset ?? 0) }),
});
