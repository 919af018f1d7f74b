/** What goes between the agent's process and that of its terminals. */
import type { FaultCode } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import type { LogFields } from '../../kernel/logger.js';
import type { ExitReason } from '../../terminal/exit.js';
import type { Launch } from '../pty/launch.js';
import type { SessionMark } from '../pty/process-table.js';

/** Where the orchestrator is, and the only key that is taken for its. */
export interface OrchestratorPlace {
  readonly host: string;
  readonly port: number;
  readonly key: PublicKeyHex;
}

/** A program to be started for a session. */
export interface ProgramOrder {
  readonly launch: Launch;
  /** Size of its terminal; null for a command on pipes. */
  readonly size: { readonly cols: number; readonly rows: number } | null;
  /** Commands on pipes only, as `timeoutSecs` is. */
  readonly stdin: boolean;
  readonly timeoutSecs: number | null;
}

/** Milliseconds of the system's monotonic clock, which all processes of a machine share. */
export const systemMonotonic = (): number => Number(process.hrtime.bigint() / 1_000_000n);

/** How to dial back for a session; the ticket is good once. */
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
      /** The program never starts after that time, by `systemMonotonic`. */
      readonly startBy: number;
    }
  | { readonly do: 'attach'; readonly sessionId: string; readonly dial: DialOrder }
  /** End the program and forget the session. */
  | { readonly do: 'close'; readonly sessionId: string }
  /** End the program and tell the orchestrator why. */
  | { readonly do: 'end-all'; readonly reason: ExitReason }
  /** The same as `end-all`, and the end of the process within a few seconds. */
  | { readonly do: 'stop' };

export type FromHost =
  /** It dials back; its program starts as soon as the orchestrator serves the session. */
  | { readonly is: 'opened'; readonly sessionId: string }
  | { readonly is: 'started'; readonly sessionId: string; readonly mark: SessionMark }
  | { readonly is: 'refused'; readonly sessionId: string; readonly code: FaultCode; readonly message: string }
  /** It has no socket; `close` or `attach` may follow. */
  | { readonly is: 'lost'; readonly sessionId: string }
  /** Its program has ended by itself; the session stays until the orchestrator has its output. */
  | { readonly is: 'ended'; readonly sessionId: string }
  /** It is forgotten. */
  | { readonly is: 'gone'; readonly sessionId: string }
  | {
      readonly is: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: LogFields;
    };
