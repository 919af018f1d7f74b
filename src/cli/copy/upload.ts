/** Copies files of this machine to another. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { nameBytes } from '../../copy/copy-frames.js';
import { HeldDirectory, reasonOfError } from '../../copy/held-directory.js';
import { Replies } from '../../copy/replies.js';
import { sendEntry } from '../../copy/send-entry.js';
import type { CopyRun, CopyWork } from './copy-run.js';
import { type CopySession, requireReady } from './copy-session.js';

export interface UploadOptions {
  /** Paths of this machine. */
  readonly sources: readonly string[];
  readonly path: string;
  readonly recursive: boolean;
  readonly preserve: boolean;
}

export class Upload implements CopyWork {
  readonly direction = 'write';
  readonly paths: readonly string[];
  private readonly options: UploadOptions;
  /** True once the machine has said that the path is the copied entry itself. The copy may make a directory of it. */
  private isTarget = false;

  constructor(options: UploadOptions) {
    this.options = options;
    this.paths = [options.path];
  }

  async copy(session: CopySession, run: CopyRun): Promise<void> {
    const { sources, recursive, preserve } = this.options;
    const { progress } = run;
    const connection = session.connect(0);
    const { out, reader, finish } = connection;
    const into = sources.length > 1;
    await out.write({ type: 'write', id: run.id, preserve, resume: run.isResumed, into, as: this.isTarget });
    const ready = await requireReady(connection);
    this.isTarget = ready.as;
    const replies = new Replies({
      reader,
      onSettled: ({ source, path, position, content }, reason) => {
        progress.source = source;
        progress.after = position;
        if (reason !== null && reason !== '') run.fail(path, reason);
        else if (reason === null && content !== null) run.file(path, content.sha256, content.bytes);
      },
    });
    const resume = { isPending: run.isResumed };
    const [first, firstAfter] = [progress.source, progress.after];
    for (let source = first; source < sources.length; source += 1) {
      const path = sources[source] ?? '';
      const label = nameBytes(basename(resolve(path)));
      const directory = await openParent(path).catch((error: unknown) => {
        // A source without any answer is told again after a cut, unless it was passed before.
        run.fail(nameBytes(path), reasonOfError(error));
        return null;
      });
      if (directory === null) continue;
      try {
        await out.write({ type: 'source', name: label });
        await sendEntry(directory.held, directory.name, {
          ...{ out, replies, recursive, resume, source, label, whole: ready.whole },
          after: source === first ? firstAfter : null,
          onBytes: (bytes) => run.bytes(bytes),
          onFailed: (failed, reason) => run.fail(failed, reason),
        });
      } finally {
        directory.held.close();
      }
    }
    await out.write({ type: 'done' });
    await replies.all();
    await finish();
  }

  async close(): Promise<void> {}
}

/** Opens the directory of a source. A link that is named is followed. */
async function openParent(path: string): Promise<{ held: HeldDirectory; name: string }> {
  const real = await realpath(path);
  return { held: await HeldDirectory.open(dirname(real)), name: nameBytes(basename(real)) };
}
