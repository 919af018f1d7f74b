/**
 * The Host port: the only door through which resource kinds see and change a machine. The real one is in
 * `src/agent/host/`; tests use a fake one with recorded facts.
 */
import type { FaultCode } from '../kernel/fault.js';
import type { Command, CommandResult } from './command.js';

/** The object at a path. A link at the last component is never followed; `docs/protocols/apply.md` says how ancestors are walked. */
export type PathFact =
  | {
      readonly type: 'absent';
      readonly parent: 'directory' | 'absent' | 'not-directory';
      /** Missing directories on the way, outermost first; left out where they cannot be made. */
      readonly missing?: readonly string[];
    }
  | ({ readonly type: 'file'; readonly size: number; readonly content: FileContent } & Metadata & Exposure)
  /** `entries` is null when they were not asked for or are more than `MAX_ENTRIES`. */
  | ({ readonly type: 'directory'; readonly entries: readonly string[] | null } & Metadata & Exposure)
  | { readonly type: 'symlink'; readonly target: string }
  | { readonly type: 'other'; readonly what: 'fifo' | 'socket' | 'block device' | 'character device' | 'unknown' }
  /** The path cannot be looked at; `code` and `message` say why. */
  | { readonly type: 'unreadable'; readonly code: FaultCode; readonly message: string };

export interface Metadata {
  readonly uid: number;
  readonly gid: number;
  /** Permission bits with setuid, setgid and sticky: 0 to 0o7777. */
  readonly mode: number;
}

/** Which unprivileged users could have put a file or directory where it is; root and the agent's own user do not count. */
export interface Exposure {
  /**
   * `owner`: only the user who owns both it and its directory. `others`: another user, who may have moved there what is not
   * theirs. Left out: none.
   */
  readonly exposedTo?: 'owner' | 'others';
}

/** `unread` when it was not asked for; `too-large` and `binary` differ from every text a module can hold. */
export type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary' }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'unread' };

export interface ObserveRequest {
  readonly path: string;
  /** Read the content of a regular file (up to `MAX_CONTENT_BYTES`). */
  readonly content: boolean;
  /** List the names in a directory. */
  readonly entries: boolean;
}

/** A directory with more names than this is only known to hold many. */
export const MAX_ENTRIES = 1000;

/** The largest file content that a module can hold or that is read for comparison, in bytes. */
export const MAX_CONTENT_BYTES = 1024 * 1024;

/** Paths to observe at once: what is read of them is in memory together. */
export const READ_BATCH = 256;

/** An owner or group: a name, or the decimal digits of a numeric id. `null` keeps what is there; what is new gets the agent's own. */
export type Principal = string | null;

/** A change to the file system. Paths are absolute and normalised. */
export type FileStep =
  | {
      /** Replace or create a file as a whole: temporary file in the same directory, synced, renamed over `path`. */
      readonly do: 'write-file';
      readonly path: string;
      readonly content: string;
      readonly owner: Principal;
      readonly group: Principal;
      /** Permission bits, or null for what `keptMode` leaves of the file that is replaced (a new one: 0644). */
      readonly mode: number | null;
      /** True when the content holds a secret: nothing of a file that another user made is kept. */
      readonly isSecret?: boolean;
      /** True when missing directories on the way are made too. */
      readonly parents?: boolean;
    }
  | {
      readonly do: 'make-directory';
      readonly path: string;
      readonly owner: Principal;
      readonly group: Principal;
      readonly mode: number;
      readonly parents?: boolean;
    }
  | {
      /**
       * Change owner, group or mode of what is there; a mode of null is what `keptMode` leaves. Fails when it is not of the
       * expected type any more, or when `refusalOfTakeover` says so.
       */
      readonly do: 'set-metadata';
      readonly path: string;
      readonly expect: 'file' | 'directory';
      readonly owner: Principal;
      readonly group: Principal;
      readonly mode: number | null;
    }
  | { readonly do: 'remove-file'; readonly path: string }
  | { readonly do: 'remove-directory'; readonly path: string };

/** A program that changes the machine. */
export interface RunStep {
  readonly do: 'run';
  readonly command: Command;
  /**
   * Arguments after those of the command. Steps of equal commands that are due together run as one, with the items of all,
   * each once; when that fails, each runs alone. Without items, equal commands run once for all.
   */
  readonly items?: readonly string[];
  /** Exit statuses that mean success: [0] unless told. */
  readonly ok?: readonly number[];
  /** True when what it writes is kept with the result, as for scripts; such a step is never run together with another. */
  readonly keepsOutput?: boolean;
}

/** A change to the machine. */
export type Step = FileStep | RunStep;

/** The fate of one step: null when it is done and durable, else why it is not. */
export type StepOutcome = { readonly code: FaultCode; readonly message: string } | null;

/** Names and numbers of users and groups, read once per run. */
export interface Accounts {
  /** The numeric id of a user name or of decimal digits; undefined when there is no such user. */
  uid(owner: string): number | undefined;
  gid(group: string): number | undefined;
  /** The name of a numeric id, or its digits when it has none. */
  userName(uid: number): string;
  groupName(gid: number): string;
  /** The ids of this process, which it makes files with. */
  readonly own: Ownership;
}

export type Ownership = Pick<Metadata, 'uid' | 'gid'>;

export interface Host {
  readonly platform: 'linux' | 'macos' | 'windows';
  /** The users and groups as they are now. */
  accounts(): Accounts;
  /** Looks at many paths; the answers are in the order of the requests. Never throws for what is at a path. */
  observe(requests: readonly ObserveRequest[]): readonly PathFact[];
  /**
   * Carries out steps that do not depend on each other, made durable as one group. The outcomes are in the order of the
   * steps; a failed step does not stop the others.
   */
  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]>;
  /** Runs a program to its end and captures what it writes. Never throws for what becomes of it. */
  run(command: Command): Promise<CommandResult>;
  /** Removes what a run that died while it wrote to these paths has left beside them. */
  tidy?(paths: readonly string[]): void;
}
