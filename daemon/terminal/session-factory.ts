/** Creates the recording and the screen of a session, new or from the recording after a restart of the orchestrator. */

import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { Piece } from '../../src/terminal/backlog.js';
import type { Core } from '../core/core.js';
import type { Screen, Screens } from './emulator/screens.js';
import type { TerminalRules } from './live-sessions.js';
import type { Recordings, Recovered } from './recordings/recorder.js';
import type { RecordingHead } from './recordings/recording.js';
import { hasTerminal, type ProgramFacts, type SessionFacts } from './session/session-core.js';
import { SessionRecording } from './session/session-recording.js';
import { TrailingScreen } from './session/trailing-screen.js';
import type { TerminalRow } from './session-store.js';

interface SessionFactoryOptions extends Pick<Core, 'logger'> {
  readonly recordings: Recordings;
  readonly screens: Screens;
  readonly rules: () => TerminalRules;
}

/** The session that the parts belong to. */
interface SessionOwner {
  readonly facts: SessionFacts;
  /** Called when more output is durable or parsed. */
  advanced(): void;
}

type Redrawn = Pick<SessionParts, 'screen' | 'size'>;

export class SessionFactory {
  private readonly options: SessionFactoryOptions;

  constructor(options: SessionFactoryOptions) {
    this.options = options;
  }

  /** Creates the parts of a new session. Throws `recording_failed` when a recording is required and impossible. */
  async begin(owner: SessionOwner, program: ProgramFacts, size: Size): Promise<SessionParts> {
    const recording = await this.record(owner, program, size);
    const screen = this.screenOf(owner, size, () => owner.advanced());
    return { program, size, recording, screen: trailing(screen, recording, 0), start: 0, tail: [], isReady: true };
  }

  /** Restores the parts after a restart; never rejects. A failed recording is reported when the session starts to listen. */
  async restore(owner: SessionOwner, row: TerminalRow): Promise<SessionParts> {
    const { user, shell, cols, rows, transcript } = row;
    const program = { user, shell };
    const size = { cols, rows };
    const common = { program, size, isReady: false };
    const lost = { ...common, screen: null, start: 0, tail: [] };
    if (row.recording !== 'on') return { ...lost, recording: SessionRecording.none(row.recording, transcript) };
    const recording = this.recordingOf(owner, transcript);
    let recovered: Recovered;
    try {
      recovered = await this.options.recordings.recover(this.headOf(owner.facts, program, size), recording.events);
    } catch (error) {
      this.warn(owner, 'a terminal is no longer recorded', error);
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

  private async record(owner: SessionOwner, program: ProgramFacts, size: Size): Promise<SessionRecording> {
    const { recordings, rules } = this.options;
    if (rules().record === 'off') return SessionRecording.none('off', null);
    const recording = this.recordingOf(owner, null);
    try {
      recording.use(await recordings.create(this.headOf(owner.facts, program, size), recording.events));
      return recording;
    } catch (error) {
      if (rules().record === 'required' || !isFault(error, 'recording_failed')) throw error;
      this.warn(owner, 'a terminal is not recorded', error);
      return SessionRecording.none('failed', null);
    }
  }

  private recordingOf(owner: SessionOwner, path: string | null): SessionRecording {
    return new SessionRecording({
      path,
      onDurable: () => owner.advanced(),
      isRequired: () => this.options.rules().record === 'required',
    });
  }

  /** Opens a screen. Returns null for a command without a terminal, and without an emulator. */
  private screenOf(owner: SessionOwner, size: Size, onParsed: () => void): Screen | null {
    if (!hasTerminal(owner.facts)) return null;
    try {
      return this.options.screens.open({ ...size, offset: 0, onParsed });
    } catch (error) {
      this.warn(owner, 'a terminal has no screen', error);
      return null;
    }
  }

  /** Returns a screen that shows the recorded output, or none when the recording cannot be read. */
  private async redraw(owner: SessionOwner, recovered: Recovered, first: Size): Promise<Redrawn> {
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

  private headOf(facts: SessionFacts, { shell }: ProgramFacts, { cols, rows }: Size): RecordingHead {
    const { id, openedAt, term, command, nodeId, nodeName, operator } = facts;
    const kept = hasTerminal(facts) ? null : this.options.rules().recordCommands;
    return { sessionId: id, openedAt, cols, rows, term, shell, command, nodeId, nodeName, operator, kept };
  }

  private warn({ facts }: SessionOwner, what: string, error: unknown): void {
    this.options.logger.warn(what, { session_id: facts.id, reason: messageOf(error) });
  }
}

/** Maximum bytes that the screen has not parsed while the recording is read. */
const REPLAY_AHEAD = 1024 * 1024;

interface ReplayTo {
  readonly screen: Screen;
  readonly first: Size;
  /** Resolves when the screen has parsed more. */
  readonly moreParsed: () => Promise<void>;
}

/** Writes the recorded output to the screen at its pace. Returns the final size. */
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

/** Returns the pieces when they end where the recording continues, else none. */
function tailUpTo(tail: readonly Piece[], end: number): readonly Piece[] {
  const last = tail.at(-1);
  return last !== undefined && last.offset + last.bytes.length === end ? tail : [];
}

/** Wraps the screen in one that a flood does not wait for, when a recording exists to catch up from. */
function trailing(screen: Screen | null, { recorder }: SessionRecording, offset: number): Screen | null {
  return screen === null || recorder === null ? screen : new TrailingScreen({ screen, recorder, offset });
}

/** Columns and rows. */
export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Recording, screen and offsets with which a session starts, or continues after a restart. */
export interface SessionParts {
  readonly size: Size;
  readonly program: ProgramFacts;
  readonly recording: SessionRecording;
  readonly screen: Screen | null;
  /** Offset of the next output byte. */
  readonly start: number;
  /** Output right before `start`, for clients that resume. */
  readonly tail: readonly Piece[];
  /** False after a restart, until the agent has sent its offsets. */
  readonly isReady: boolean;
}
