/** Messages between the agent's process and the terminal host. */
import type { FaultCode } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import type { LogFields, LogLevel } from '../../kernel/logger.js';
import type { ExitReason } from '../../terminal/exit.js';
import type { Launch } from '../pty/launch.js';
import type { SessionMark } from '../pty/process-table.js';

/** Address of the orchestrator and its pinned key. */
export interface OrchestratorPlace {
  readonly host: string;
  readonly port: number;
  readonly key: PublicKeyHex;
}

/** Program of a session. */
export interface ProgramOrder {
  readonly launch: Launch;
  /** Size of the terminal; null for a command on pipes. */
  readonly size: { readonly cols: number; readonly rows: number } | null;
  /** Only for commands on pipes, like `timeoutSecs`. */
  readonly stdin: boolean;
  readonly timeoutSecs: number | null;
  /** True to wait until no process has the output open; null for an orchestrator that does not know of open output. */
  readonly wait: boolean | null;
}

/** Returns milliseconds of the system's monotonic clock, which all processes of a machine share. */
export const systemMonotonic = (): number => Number(process.hrtime.bigint() / 1_000_000n);

/** Dials back for a session. The ticket is valid once. */
export interface DialOrder {
  readonly place: OrchestratorPlace;
  readonly ticket: string;
}

export type ToHost =
  | {
      readonly do: 'open';
      readonly sessionId: string;
      readonly order: ProgramOrder;
      readonly dial: DialOrder;
      /** Time of `systemMonotonic` after which the program never starts. */
      readonly startBy: number;
    }
  | { readonly do: 'attach'; readonly sessionId: string; readonly dial: DialOrder }
  /** Ends the program and forgets the session. */
  | { readonly do: 'close'; readonly sessionId: string }
  /** Ends all programs and reports the reason to the orchestrator. */
  | { readonly do: 'end-all'; readonly reason: ExitReason }
  /** Like `end-all`, and ends the process within a few seconds. */
  | { readonly do: 'stop' };

/** A line for the log of the agent. */
export interface HostLog {
  readonly is: 'log';
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

export type FromHost =
  /** The session dials back. Its program starts when the orchestrator serves the session. */
  | { readonly is: 'opened'; readonly sessionId: string }
  | { readonly is: 'started'; readonly sessionId: string; readonly mark: SessionMark }
  | { readonly is: 'refused'; readonly sessionId: string; readonly code: FaultCode; readonly message: string }
  /** The session has no socket. `close` or `attach` may follow. */
  | { readonly is: 'lost'; readonly sessionId: string }
  /** The program has exited. The session stays until the orchestrator has its output. */
  | { readonly is: 'ended'; readonly sessionId: string }
  /** The session is forgotten. */
  | { readonly is: 'gone'; readonly sessionId: string }
  | HostLog;

/** A message about a session. */
export type SessionReport = Exclude<FromHost, HostLog>;
