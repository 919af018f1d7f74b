/** Makes what the output of a session goes to: its recording and its screen; anew, or from what is left after a restart. */
import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Piece } from '../../src/terminal/backlog.js';
import type { RecordingHead, Recordings, Recovered } from './recordings/recorder.js';
import type { Screen, Screens } from './screen.js';
import { hasTerminal, type ProgramFacts, type SessionFacts } from './session/session-facts.js';
import type { SessionParts, Size } from './session/session-parts.js';
import { SessionRecording } from './session/session-recording.js';
import { TrailingScreen } from './session/trailing-screen.js';
import type { TerminalRow } from './session-store.js';
import type { TerminalRules } from './terminal-rules.js';

export interface PartsMakerOptions {
  readonly recordings: Recordings;
  readonly screens: Screens;
  readonly rules: () => TerminalRules;
  readonly logger: Logger;
}

/** The session that they are for. */
export interface PartsOwner {
  readonly facts: SessionFacts;
  /** The disk has more of the output, or the screen has shown more of it. */
  advanced(): void;
}

type Redrawn = Pick<SessionParts, 'screen' | 'size'>;

export class PartsMaker {
  private readonly options: PartsMakerOptions;

  constructor(options: PartsMakerOptions) {
    this.options = options;
  }

  /** Throws `recording_failed` when there has to be a recording and there is none. */
  async begin(owner: PartsOwner, program: ProgramFacts, size: Size): Promise<SessionParts> {
    const recording = await this.record(owner, program, size);
    const screen = this.screenOf(owner, size, () => owner.advanced());
    return { program, size, recording, screen: trailing(screen, recording, 0), start: 0, tail: [], isInStep: true };
  }

  /** After a restart; never rejects. What cannot be recorded any more says so as soon as the session listens. */
  async restore(owner: PartsOwner, row: TerminalRow): Promise<SessionParts> {
    const { user, shell, cols, rows, transcript } = row;
    const program = { user, shell };
    const size = { cols, rows };
    const common = { program, size, isInStep: false };
    const lost = { ...common, screen: null, start: 0, tail: [] };
    if (row.recording !== 'on') return { ...lost, recording: SessionRecording.none(row.recording, transcript) };
    const recording = this.recordingOf(owner, transcript);
    let recovered: Recovered;
    try {
      recovered = await this.options.recordings.recover(headOf(owner.facts, program, size), recording.events);
    } catch (error) {
      this.warn(owner, 'a terminal is not recorded any more', error);
      recording.stop('failed', messageOf(error));
      return { ...lost, recording };
    }
    const { recorder, tail } = recovered;
    recording.use(recorder);
    recorder.mark('relay restarted');
    const start = recorder.durable;
    const redrawn = await this.redraw(owner, recovered, size);
    const screen = trailing(redrawn.screen, recording, start);
    return { ...common, ...redrawn, screen, recording, start, tail: tailUpTo(tail, start) };
  }

  private async record(owner: PartsOwner, program: ProgramFacts, size: Size): Promise<SessionRecording> {
    const { recordings, rules } = this.options;
    if (rules().record === 'off') return SessionRecording.none('off', null);
    const recording = this.recordingOf(owner, null);
    try {
      recording.use(await recordings.create(headOf(owner.facts, program, size), recording.events));
      return recording;
    } catch (error) {
      if (rules().record === 'required' || !isFault(error, 'recording_failed')) throw error;
      this.warn(owner, 'a terminal is not recorded', error);
      return SessionRecording.none('failed', null);
    }
  }

  private recordingOf(owner: PartsOwner, path: string | null): SessionRecording {
    return new SessionRecording({
      path,
      onDurable: () => owner.advanced(),
      isRequired: () => this.options.rules().record === 'required',
    });
  }

  /** Null for a command without a terminal, and when there is no emulator: the session goes on without pictures. */
  private screenOf(owner: PartsOwner, size: Size, onParsed: () => void): Screen | null {
    if (!hasTerminal(owner.facts)) return null;
    try {
      return this.options.screens.open({ ...size, offset: 0, onParsed });
    } catch (error) {
      this.warn(owner, 'a terminal has no screen', error);
      return null;
    }
  }

  /** A screen that shows all that was recorded; none when that cannot be read, and the session goes on without pictures. */
  private async redraw(owner: PartsOwner, recovered: Recovered, first: Size): Promise<Redrawn> {
    let wake = () => {};
    const onParsed = () => {
      wake();
      owner.advanced();
    };
    const screen = this.screenOf(owner, first, onParsed);
    if (screen === null) return { screen, size: first };
    const moreParsed = () =>
      new Promise<void>((resolve) => {
        wake = resolve;
      });
    try {
      return { screen, size: await replay(recovered, { screen, first, moreParsed }) };
    } catch (error) {
      screen.close();
      this.warn(owner, 'the screen of a terminal is lost', error);
      return { screen: null, size: first };
    }
  }

  private warn({ facts }: PartsOwner, what: string, error: unknown): void {
    this.options.logger.warn(what, { session_id: facts.id, reason: messageOf(error) });
  }
}

/** Output that the screen may still have to show while more is read, in bytes. */
const REPLAY_AHEAD = 1024 * 1024;

interface ReplayTo {
  readonly screen: Screen;
  readonly first: Size;
  /** Resolves when the screen has shown more. */
  readonly moreParsed: () => Promise<void>;
}

/** Shows the screen all that was recorded, at the pace at which it takes it. Gives its size in the end. */
async function replay(recovered: Recovered, { screen, first, moreParsed }: ReplayTo): Promise<Size> {
  let size = first;
  let shown = 0;
  for await (const piece of recovered.replay()) {
    if (!('output' in piece)) {
      size = { cols: piece.cols, rows: piece.rows };
      screen.resize(size.cols, size.rows);
      continue;
    }
    screen.write(piece.output);
    shown += piece.output.length;
    while (shown - screen.parsed > REPLAY_AHEAD) await moreParsed();
  }
  return size;
}

/** Pieces that end where the recording goes on; nothing when they do not fit. */
function tailUpTo(tail: readonly Piece[], end: number): readonly Piece[] {
  const last = tail.at(-1);
  return last !== undefined && last.offset + last.bytes.length === end ? tail : [];
}

/** One that a flood does not wait for, when there is a recording to read it back from. */
function trailing(screen: Screen | null, { recorder }: SessionRecording, offset: number): Screen | null {
  return screen === null || recorder === null ? screen : new TrailingScreen({ screen, recorder, offset });
}

const headOf = (facts: SessionFacts, { shell }: ProgramFacts, { cols, rows }: Size): RecordingHead => {
  const { id, openedAt, term, command, nodeId, nodeName, operator } = facts;
  return { sessionId: id, openedAt, cols, rows, term, shell, command, nodeId, nodeName, operator };
};
