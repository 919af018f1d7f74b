/** `orch term replay`. */
import { Fault } from '../../../kernel/fault.js';
import { type OpenCast, readCast } from '../../../terminal/recording/read-cast.js';
import { argument } from '../../argument.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { text } from '../../option.js';
import {
  type Download,
  downloadRecording,
  openRecordingFile,
  requireAsRecorded,
} from '../../terminal/open-recording.js';
import { replay } from '../../terminal/replay.js';
import { parseTimeInRecording } from '../../terminal/replay-time.js';
import { writeChunk } from '../../terminal/write-chunks.js';

export const command = defineCommand({
  examples: [
    'orch term replay 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch term replay session.cast --speed 4 --idle-limit 2',
    'orch term replay 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --at 12:30',
  ],
  detail: [
    'Shows what was shown, until Ctrl-C. Only what draws reaches your terminal: no title, clipboard, question or mouse mode',
    'of the recorded program does. The window should be at least as large as the recorded one. Files of asciicast version 2',
    'may come from other programs, and may be gzipped.',
  ],
  access: 'operator',
  args: { recording: argument('ID|FILE', 'session ID or a unique beginning of one, or a file', 'terminal') },
  options: {
    speed: text('N', 'so many times as fast: 2, 0.5'),
    idleLimit: text('SECONDS', 'make pauses no longer than that'),
    at: text('TIME', 'begin with the screen of that time: 90, 12:30 or 1:02:03'),
  },
  run: async (context, input) => {
    const { stdout } = context.streams;
    if (stdout.isTTY !== true) {
      throw new Fault('usage', 'a replay needs a terminal', {
        hint: 'for a file or a pipe: orch term transcript ID --format raw',
      });
    }
    const speed = input.speed === undefined ? 1 : parseNumber(input.speed, '--speed');
    const idleLimit =
      input.idleLimit === undefined ? Number.POSITIVE_INFINITY : parseNumber(input.idleLimit, '--idle-limit');
    const from = input.at === undefined ? 0 : parseTimeInRecording(input.at, '--at');
    const { cast, download } = await open(context, input.recording);
    tellSize(context, cast);
    const { clock, signal } = context;
    const write = (chunk: string) => writeChunk(stdout, chunk);
    const status = await replay(cast.items, {
      speed,
      idleLimit,
      from,
      clock,
      signal,
      write,
    });
    if (download !== null) requireAsRecorded(download);
    if (status !== null && status !== '0') context.note(`It ended with exit status ${status}.`);
    return {};
  },
});

/** `download` is null for a file, of which nobody knows what it should be. */
async function open(
  context: Context,
  recording: string,
): Promise<{ readonly cast: OpenCast; readonly download: Download | null }> {
  const file = await openRecordingFile(recording);
  if (file !== null) return { cast: await readCast(file), download: null };
  const download = await downloadRecording(await context.api(), recording, context.signal);
  return { cast: await readCast(download.chunks), download };
}

function tellSize(context: Context, { head: { width, height } }: OpenCast): void {
  const { columns = 0, rows = 0 } = context.streams.stdout;
  if (width <= columns && height <= rows) return;
  context.note(
    `It was recorded at ${width}x${height}, and this window is ${columns}x${rows}: lines may break elsewhere.`,
  );
}

function parseNumber(given: string, name: string): number {
  const number = /^\d{1,6}(\.\d{1,6})?$/.test(given) ? Number(given) : 0;
  if (number > 0) return number;
  throw new Fault('usage', `${name} takes a number above 0, not "${given}"`, { hint: 'such as 2 or 0.5' });
}
