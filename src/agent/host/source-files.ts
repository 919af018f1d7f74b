/** Files beside modules and downloads that are the content of files on this machine. */
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { type FileStep, MAX_DOWNLOAD_BYTES, type SourceFile, type StepOutcome } from '../../resources/host.js';

/** The place that files come from. */
export interface SourceFiles {
  /**
   * Returns the path of a file on this machine, and brings it there if necessary. Rejects with `content_unavailable`, or with the
   * reason of the signal.
   */
  bring(file: SourceFile, signal: AbortSignal | undefined): Promise<string>;
}

/** Bytes that are read at a time. */
const CHUNK = 1024 * 1024;

/** The files that the steps of one run take. */
export class BroughtFiles {
  private readonly options: {
    readonly files: SourceFiles | undefined;
    readonly signal: AbortSignal | undefined;
  };
  /** Paths on this machine, by SHA-256. */
  private readonly paths = new Map<string, string>();

  constructor({ files, signal }: Partial<BroughtFiles['options']>) {
    this.options = { files, signal };
  }

  /** Brings files. Rejects with the Fault of the first one that does not come. */
  async bring(wanted: readonly SourceFile[]): Promise<void> {
    const { files, signal } = this.options;
    for (const file of wanted) {
      const { sha256, source } = file;
      if (this.paths.has(sha256)) continue;
      if (files === undefined) throw new Fault('content_unavailable', `nothing brings ${nameOf(file)} here`);
      try {
        this.paths.set(sha256, await files.bring(file, signal));
      } catch (cause) {
        if (!isFault(cause, 'content_unavailable')) throw cause;
        const what =
          file.url === undefined ? `the file ${source} of the module does not come` : `${source} does not come`;
        throw new Fault(cause.code, `${what}: ${cause.message}`, { cause });
      }
    }
  }

  /** Brings what steps take. Returns the refusals of those whose file does not come, by step. */
  async bringFor(steps: readonly FileStep[]): Promise<ReadonlyMap<FileStep, StepOutcome>> {
    const refusals = new Map<FileStep, StepOutcome>();
    for (const step of steps) {
      if (!('content' in step) || typeof step.content === 'string') continue;
      try {
        await this.bring([step.content]);
      } catch (error) {
        const code = isFault(error) ? error.code : 'content_unavailable';
        refusals.set(step, { code, message: messageOf(error) });
      }
    }
    return refusals;
  }

  /** Writes a content into an open file. Throws `content_unavailable` for a file whose bytes are not those of its SHA-256. */
  write(descriptor: number, content: string | SourceFile): void {
    if (typeof content === 'string') {
      writeFileSync(descriptor, content);
      return;
    }
    const { sha256 } = content;
    if (copy(this.pathOf(content), descriptor) === sha256) return;
    throw this.damaged(content);
  }

  /** Opens a file that was brought at its beginning; the caller closes it. Throws `content_unavailable` if its SHA-256 is another one. */
  open(content: SourceFile): number {
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);
    const path = this.pathOf(content);
    const read = openSync(path, flags);
    try {
      if (digestOf(read, Buffer.allocUnsafe(CHUNK)) !== content.sha256) throw this.damaged(content);
    } finally {
      closeSync(read);
    }
    // Only the agent can change the file meanwhile.
    return openSync(path, flags);
  }

  private pathOf(content: SourceFile): string {
    const path = this.paths.get(content.sha256);
    if (path === undefined) throw new Fault('content_unavailable', `${nameOf(content)} is not here`);
    return path;
  }

  /** A damaged copy must not be taken again. */
  private damaged(content: SourceFile): Fault {
    this.paths.delete(content.sha256);
    return new Fault('content_unavailable', `${nameOf(content)} has changed while it was copied`);
  }
}

const nameOf = ({ url, source }: SourceFile): string =>
  url === undefined ? `the file ${source} of the module` : source;

/** Copies a file and returns the SHA-256 of what was copied, in hex. */
function copy(path: string, to: number): string | null {
  const from = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    return digestOf(from, Buffer.allocUnsafe(CHUNK), {
      pass: (bytes) => {
        for (let written = 0; written < bytes.length; ) written += writeSync(to, bytes, written);
      },
    });
  } finally {
    closeSync(from);
  }
}

interface DigestOptions {
  /** Called with each part, which it must not keep. */
  readonly pass?: (bytes: Buffer) => void;
  /** Maximum bytes of the file [default: `MAX_DOWNLOAD_BYTES`]. */
  readonly maxBytes?: number;
}

/** Reads an open file to its end. Returns the SHA-256 in hex; null for a file of more than `maxBytes`. */
export function digestOf(
  descriptor: number,
  buffer: Buffer,
  { pass, maxBytes = MAX_DOWNLOAD_BYTES }: DigestOptions = {},
): string | null {
  const hash = createHash('sha256');
  for (let total = 0; total <= maxBytes; ) {
    const bytes = buffer.subarray(0, readSync(descriptor, buffer, 0, buffer.length, null));
    if (bytes.length === 0) return hash.digest('hex');
    hash.update(bytes);
    pass?.(bytes);
    total += bytes.length;
  }
  return null;
}
