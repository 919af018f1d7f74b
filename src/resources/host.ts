/**
 * The Host interface, through which resource kinds observe and change a machine. The real Hosts are in `src/agent/host/`; tests
 * use a fake one with recorded facts.
 */
import type { FaultCode } from '../kernel/fault.js';
import type { ArchiveReading, UnpackedFact, UnpackedRequest } from './archive/unpacked.js';
import type { Command, CommandEnd, CommandResult } from './command.js';

/** The object at a path. A link at the last component is never followed; for ancestors see `docs/protocols/apply.md`. */
export type PathFact =
  | {
      readonly type: 'absent';
      readonly parent: 'directory' | 'absent' | 'not-directory';
      /** Missing parent directories, outermost first; absent where they cannot be made. */
      readonly missing?: readonly string[];
      /** The link to a missing target that has the name of the first missing directory. */
      readonly dangling?: { readonly path: string; readonly target: string };
      /** True where a new directory gets the setgid bit of the directory that it comes into. */
      readonly setgid?: true;
      /** True where only the kernel makes files. */
      readonly isVirtual?: true;
    }
  | ({
      readonly type: 'file';
      readonly size: number;
      readonly content: FileContent;
      /** True in a file system of the kernel, in which no file can be replaced. */
      readonly isVirtual?: true;
    } & Metadata &
      Exposure)
  /** `entries` is null when not requested, and when there are more than `MAX_ENTRIES`. */
  | ({ readonly type: 'directory'; readonly entries: readonly string[] | null } & Metadata & Exposure)
  /** `owner` is absent on Windows. */
  | { readonly type: 'symlink'; readonly target: string; readonly owner?: Ownership }
  | { readonly type: 'other'; readonly what: 'fifo' | 'socket' | 'block device' | 'character device' | 'unknown' }
  /** The path cannot be observed; `code` and `message` say why. */
  | { readonly type: 'unreadable'; readonly code: FaultCode; readonly message: string };

export interface Metadata {
  readonly uid: number;
  readonly gid: number;
  /** Permission bits with setuid, setgid and sticky: 0 to 0o7777. */
  readonly mode: number;
}

/** Unprivileged users who could have put a file or directory in its place; root and the agent's own user do not count. */
export interface Exposure {
  /**
   * `owner`: only the user who owns both it and its directory. `others`: another user, who may have moved a foreign object
   * there. Absent: none.
   */
  readonly exposedTo?: 'owner' | 'others';
  /** True for an access list that `others` could have chosen; looked for only where there are such users. */
  readonly hasForeignList?: true;
}

/** `unread` when not requested; `too-large` and `binary` differ from every text that a module can hold. */
export type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  /** SHA-256 in hex, when requested. */
  | { readonly kind: 'digest'; readonly sha256: string }
  | { readonly kind: 'binary' }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'unread' };

export interface ObserveRequest {
  readonly path: string;
  /**
   * True to read the content of a regular file (up to `MAX_CONTENT_BYTES`), `digest` for the SHA-256 of it (up to
   * `MAX_DOWNLOAD_BYTES`).
   */
  readonly content: boolean | 'digest';
  /** True to list the names in a directory. */
  readonly entries: boolean;
}

/** Maximum listed names of a directory. */
export const MAX_ENTRIES = 1000;

/** Maximum bytes of a file's content, in a module and for comparison. */
export const MAX_CONTENT_BYTES = 1024 * 1024;

/** Maximum bytes of a file beside a module. */
export const MAX_SOURCE_BYTES = 64 * 1024 * 1024;

/** Maximum bytes of a file that the machine downloads, and of files that are compared by SHA-256. */
export const MAX_DOWNLOAD_BYTES = 512 * 1024 * 1024;

/** Paths per observation, whose contents are in memory together. */
export const READ_BATCH = 256;

/** An owner or group: a name or the digits of a numeric ID. Null keeps the present one; new objects get the agent's own. */
export type Principal = string | null;

/** As a group: the login group of the owner, who may be made by an earlier step. No group has this name. */
export const OWNERS_GROUP = ':';

/** A file that is the content of another one: a file beside a module, or one that the machine downloads. */
export interface SourceFile {
  /** Hex. */
  readonly sha256: string;
  /** Path in the module, or the URL, for messages. */
  readonly source: string;
  /** Address of a download; absent for a file beside the module. */
  readonly url?: string;
}

/** A change to the file system. Paths are absolute and normalised. */
export type FileStep =
  | {
      /** Replaces or creates a whole file: temporary file in the same directory, synced, renamed over `path`. */
      readonly do: 'write-file';
      readonly path: string;
      readonly content: string | SourceFile;
      readonly owner: Principal;
      readonly group: Principal;
      /** Permission bits; null for those that `keptMode` leaves of the replaced file (of a new file: 0644). */
      readonly mode: number | null;
      /** Content that the file must still have, null for no file; absent where any content is replaced. */
      readonly over?: string | null;
      /** True when the content holds a secret, so that no attribute of another user's file is kept. */
      readonly isSecret?: boolean;
      /** True to make missing parent directories. */
      readonly parents?: boolean;
    }
  | {
      readonly do: 'make-directory';
      readonly path: string;
      readonly owner: Principal;
      readonly group: Principal;
      /** Null for 0755 with the setgid bit that the new directory inherits. */
      readonly mode: number | null;
      readonly parents?: boolean;
    }
  | {
      /** Makes a symbolic link, in place of another one too. Fails for anything else that is there. */
      readonly do: 'make-link';
      readonly path: string;
      readonly target: string;
      readonly owner: Principal;
      readonly group: Principal;
      /** True to put it in the place of a regular file. */
      readonly replace: boolean;
      readonly parents?: boolean;
    }
  | {
      /**
       * Changes owner, group or mode; a null mode is the one that `keptMode` leaves. Fails when the type is not the expected one,
       * or when `refusalOfTakeover` refuses.
       */
      readonly do: 'set-metadata';
      readonly path: string;
      readonly expect: 'file' | 'directory';
      readonly owner: Principal;
      readonly group: Principal;
      readonly mode: number | null;
    }
  | {
      readonly do: 'remove-file';
      readonly path: string;
      /** What may be removed: a regular file, a symbolic link, or both [default: file]. */
      readonly expect?: 'file' | 'symlink' | 'either';
    }
  /** Removes a directory with everything in it that is on its file system. */
  | { readonly do: 'remove-tree'; readonly path: string }
  | { readonly do: 'remove-directory'; readonly path: string }
  | ({
      /**
       * Unpacks an archive into a directory and removes what an earlier archive has left there. All of the archive is checked before
       * anything changes, and a failure puts back what was there.
       */
      readonly do: 'unpack';
      readonly path: string;
      readonly content: SourceFile;
      readonly owner: Principal;
      readonly group: Principal;
      /** True to replace files and links that were not unpacked here. */
      readonly replace: boolean;
      /** Paths in the directory that belong to other resources. */
      readonly spares: readonly string[];
      readonly parents?: boolean;
    } & ArchiveReading)
  | {
      /** Removes what was unpacked into a directory and has not changed, and the directory if it was made for that. */
      readonly do: 'remove-unpacked';
      readonly path: string;
      readonly spares: readonly string[];
      /** True when the directory stays, even empty. */
      readonly keepsDirectory: boolean;
    };

/** A program run that changes the machine. */
export interface RunStep {
  readonly do: 'run';
  readonly command: Command;
  /**
   * Arguments after those of the command. Steps with equal commands that are due together run as one command with the items of
   * all; if it fails, each runs alone. Without items, equal commands run once for all.
   */
  readonly items?: readonly string[];
  /** Exit statuses that mean success [default: 0]. */
  readonly ok?: readonly number[];
  /** True to keep the output with the result, as for scripts; such a step never runs together with another. */
  readonly keepsOutput?: boolean;
  /** The file that the command checks before a later step writes it. */
  readonly checks?: CheckedFile;
  /**
   * Path that an earlier step of the resource writes. The command runs once the files of all resources of the group with an equal one
   * are in place. If it fails, they get back what was there before.
   */
  readonly restores?: string;
  /** True for a step that ends the agent, which waits until the results of the run are stored. */
  readonly isDeferred?: boolean;
}

/** A content that a command checks or takes in a copy, whose path it gets for `%s`. */
export interface CheckedFile {
  /** Path of the file that gets the content. The copy has its last part as name. */
  readonly path: string;
  readonly content: string | SourceFile;
  readonly owner: Principal;
  readonly group: Principal;
  readonly mode: number;
  /** True for a copy on disk that no other user reaches, in place of one that other users may open by its name. */
  readonly isPrivate?: boolean;
}

/** What was at paths before a change. */
export interface KeptPaths {
  /** Puts back what was at a path. Returns why it is not there again; null when it is. */
  restore(path: string): Promise<string | null>;
  /** Deletes what was kept. */
  drop(): void;
}

/** A change to the machine. */
export type Step = FileStep | RunStep;

/** The outcome of one step: null when it is done and durable, else the reason. */
export type StepOutcome = { readonly code: FaultCode; readonly message: string } | null;

/** Names and numeric IDs of users and groups. */
export interface Accounts {
  /** Returns the numeric ID of a user name or of digits; undefined without such a user. */
  uid(owner: string): number | undefined;
  gid(group: string): number | undefined;
  /** Returns the login group of a user name or of digits; undefined without such a user. */
  loginGroup(owner: string): number | undefined;
  /** Returns the name of a numeric ID, or its digits. */
  userName(uid: number): string;
  groupName(gid: number): string;
  /** IDs of this process, which new files get. */
  readonly own: Ownership;
}

export type Ownership = Pick<Metadata, 'uid' | 'gid'>;

/** Paths that an unpacking may change. */
export interface ChangedPaths {
  readonly paths: readonly string[];
  readonly record: string;
}

/** Time and size of an object in the file system. */
export interface FileStamp {
  readonly isDirectory: boolean;
  /** Last change of content or attributes in Unix milliseconds, which no program sets; by the clock of the machine. */
  readonly changedAt: number;
  readonly size: number;
}

export interface Host {
  readonly platform: 'linux' | 'macos' | 'windows';
  /** Returns the current users and groups. */
  accounts(): Accounts;
  /** Observes paths; the facts are in the order of the requests. Never throws for the state of a path. */
  observe(requests: readonly ObserveRequest[]): readonly PathFact[];
  /**
   * Carries out independent steps and makes them durable as one group. The outcomes are in the order of the steps; a failed step
   * does not stop the others.
   */
  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]>;
  /**
   * Brings files beside modules and downloads onto the machine, so that steps can take them. Rejects with `content_unavailable` for the first one
   * that does not come.
   */
  bring?(files: readonly SourceFile[]): Promise<void>;
  /** Returns why a command cannot be started; null when it can. */
  unstartable?(
    command: Pick<Command, 'argv' | 'user' | 'directory'>,
  ): Extract<CommandEnd, { readonly how: 'not-started' }> | null;
  /** Returns why a step cannot be done as the file systems are mounted now; null when that does not keep it from being done. */
  obstacle?(step: FileStep): StepOutcome;
  /** Paths of the agent itself: its program, its settings and its data. */
  readonly ownPaths?: readonly string[];
  /** Name of the service of systemd that this process runs in; null or absent for none. */
  readonly ownService?: string | null;
  /**
   * Runs a program to its end and captures its output. Failures are in the result. Rejects with the Fault `interrupted` when the
   * agent stops and must not wait for the program.
   * @param checked file of which the command gets a copy
   */
  run(command: Command, checked?: CheckedFile): Promise<CommandResult>;
  /** Keeps what is at paths, on Linux. Rejects with a Fault where it cannot. */
  keep?(paths: readonly string[]): Promise<KeptPaths>;
  /**
   * Returns a function that names the directory that a path leads to, however the path is written: by device and inode where it
   * exists, else by its nearest existing ancestor and the rest. A host without it knows each path by its text alone.
   */
  locator?(): (path: string) => string;
  /** Compares directories with the archives that were unpacked into them, in the order of the requests. */
  unpacked?(requests: readonly UnpackedRequest[]): readonly UnpackedFact[];
  /**
   * Returns the paths that an unpacking may change in a directory, without the directory, and the path of the record of it. Rejects
   * with the Fault of an archive that is refused. @param archive null for a removal
   */
  unpackedPaths?(
    path: string,
    archive: (ArchiveReading & { readonly content: SourceFile }) | null,
  ): Promise<ChangedPaths>;
  /** Returns when the object at a path was last changed; null where there is none, or where the path may not be followed. */
  stamp?(path: string): FileStamp | null;
  /** Removes temporary files that a dead run left beside these paths. */
  removeTemporaries?(paths: readonly string[]): void;
}
