/** `orch term transcript`. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { Fault, messageOf } from '../../../kernel/fault.js';
import { toHarmless, toHarmlessCast, toHtml, toRaw, toText } from '../../../terminal/recording/convert-cast.js';
import { Neutralizer } from '../../../terminal/recording/neutralizer.js';
import { readCast } from '../../../terminal/recording/read-cast.js';
import { defineCommand } from '../../define-command.js';
import { choice, flag, text } from '../../option.js';
import type { OutputStream } from '../../render/printer.js';
import { downloadRecording, requireAsRecorded } from '../../terminal/open-recording.js';
import { writeChunks } from '../../terminal/write-chunks.js';
import { lines } from '../../view.js';
import { sessionArgument } from './find-session.js';

const FORMATS = ['cast', 'raw', 'txt', 'html'] as const;
type Format = (typeof FORMATS)[number];
type Chunks = AsyncIterable<Uint8Array | string>;

export const command = defineCommand({
  examples: [
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --format cast --out session.cast',
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --format raw | sha256sum',
  ],
  detail: [
    'Forms: cast is the recording itself (asciicast version 2, for asciinema and "orch term replay"), raw every byte that the',
    'program wrote, txt its lines without control sequences, html a page with colours and without scripts. Of a session that',
    'is still open it is what has been stored so far. That you read it goes into the audit log.',
    'Files and pipes get cast and raw exactly as they were, with whatever a program put there for the terminal of whoever',
    'looks; --harmless takes that out. What is printed on a terminal is harmless in any case.',
  ],
  access: 'operator',
  args: { id: sessionArgument },
  options: {
    format: choice('FORM', FORMATS, 'cast, raw, txt or html; when left out, txt on a terminal and else cast'),
    out: text('FILE', 'write it to a new file', { completes: 'file' }),
    harmless: flag('cast and raw without what acts on a terminal instead of drawing'),
  },
  run: async (context, { id, format, out, harmless }) => {
    const { streams, signal } = context;
    const isTerminal = out === undefined && streams.stdout.isTTY === true;
    const download = await downloadRecording(await context.api(), id, signal);
    const form = format ?? (isTerminal ? 'txt' : 'cast');
    const chunks = await convert(download.chunks, form, harmless || isTerminal);
    if (out === undefined) {
      await writeChunks(streams.stdout, isTerminal ? printable(chunks) : chunks, signal);
    } else {
      await writeFile(out, chunks, signal);
    }
    requireAsRecorded(download);
    return out === undefined ? {} : { view: lines(`Wrote ${out}.`) };
  },
});

async function convert(chunks: AsyncIterable<Uint8Array>, form: Format, isHarmless: boolean): Promise<Chunks> {
  if (form === 'cast' && !isHarmless) return chunks;
  const cast = await readCast(chunks);
  if (form === 'cast') return toHarmlessCast(cast);
  if (form === 'raw') return isHarmless ? toHarmless(cast) : toRaw(cast);
  return form === 'txt' ? toText(cast) : toHtml(cast);
}

/** Nothing that comes from a machine reaches the terminal but through here. */
async function* printable(chunks: Chunks): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  const neutralizer = new Neutralizer();
  for await (const chunk of chunks) {
    yield neutralizer.write(typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)));
  }
  yield neutralizer.undo();
}

async function writeFile(path: string, chunks: Chunks, signal: AbortSignal): Promise<void> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  const opened = new Promise<void>((resolve, reject) => file.once('open', () => resolve()).once('error', reject));
  await opened.catch((cause: unknown) => {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new Fault('usage', isThere ? `${path} is there already` : `${path} cannot be made: ${messageOf(cause)}`, {
      hint: 'give the name of a file that is not there yet',
      cause,
    });
  });
  // Errors come to whoever writes.
  file.on('error', () => undefined);
  try {
    await writeChunks(file as OutputStream, chunks, signal);
    await new Promise<void>((resolve, reject) =>
      file.end((error?: Error | null) => (error ? reject(error) : resolve())),
    );
  } catch (error) {
    file.destroy();
    await rm(path, { force: true });
    throw error;
  }
}
