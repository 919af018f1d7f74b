/** The real Hosts of Linux, macOS and Windows. Each run needs a new one: a Host remembers which directories it has tidied. */
import { Fault } from '../../kernel/fault.js';
import type { UnpackedFact, UnpackedRequest } from '../../resources/archive/unpacked.js';
import type { Command, CommandResult } from '../../resources/command.js';
import type {
  Accounts,
  ChangedPaths,
  CheckedFile,
  FileStamp,
  FileStep,
  Host,
  KeptPaths,
  ObserveRequest,
  PathFact,
  SourceFile,
  StepOutcome,
} from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import { parentOfWindowsPath, problemOfWindowsPath, windowsPath } from '../../resources/windows/windows-path.js';
import { AGENT_DEFAULTS } from '../../settings/agent.js';
import { AccountFiles, MacAccountRecords } from './accounts.js';
import { lookAtUnpacked } from './archive/compare-entry.js';
import { entriesOfArchive } from './archive/staged-archive.js';
import { isReadingOf, UnpackedRecords } from './archive/unpacked-records.js';
import { AccessLists } from './attributes.js';
import { runOnCopy } from './checked-copy.js';
import { commit } from './commit.js';

import type { HeldPrograms } from './held-programs.js';
import { keepPaths } from './kept-paths.js';
import { environmentOf, findProgram, problemOfDirectory } from './launch.js';
import { createLocator } from './locator.js';
import { Mounts } from './mounts.js';
import { observe, stampAt } from './observe.js';
import { otherUser } from './other-user.js';
import { ownService } from './own-service.js';
import type { NotStarted } from './run-command.js';
import { bestReach, type Reach, SafeWalk } from './safe-walk.js';
import { ScriptDirectories } from './script-directory.js';
import { BroughtFiles, type SourceFiles } from './source-files.js';
import { Temporaries } from './temporaries.js';
import { runOnUnix } from './unix-run.js';
import { commitWindows, type Replace, replaceKeepingAccess } from './windows-commit.js';
import { observeWindows } from './windows-observe.js';
import { runOnWindows } from './windows-run.js';
import { type ToNative, WindowsWalk } from './windows-walk.js';

/** The settings of the agent. */
const AGENT_CONFIG = '/etc/orch/agent.yaml';

export interface ThisHostOptions {
  /** Aborted when the run is cancelled or the agent stops; the reason tells which. */
  readonly signal?: AbortSignal | undefined;
  /** The agent's data directory, for scripts and input of programs [default: the temporary directory of the system]. */
  readonly dataDir?: string | undefined;
  /** Maximum seconds of a script. */
  readonly scriptTimeoutSecs?: number | undefined;
  /** Programs that start although their files are gone; on Linux. */
  readonly held?: HeldPrograms | undefined;
  /** Where files beside modules come from [default: nowhere]. */
  readonly files?: SourceFiles | undefined;
}

/** Creates the Host of this machine. Throws `unsupported_on_platform` where there is none. */
export function thisHost(options: ThisHostOptions = {}): Host {
  if (process.platform === 'linux') return new UnixHost({ ...options, platform: 'linux' });
  if (process.platform === 'darwin') return new UnixHost({ ...options, platform: 'macos' });
  if (process.platform === 'win32') return new WindowsHost(options);
  throw new Fault('unsupported_on_platform', `orch cannot manage files on ${process.platform} yet`, {
    hint: 'run the agent on Linux, macOS or Windows',
  });
}

export interface UnixHostOptions extends ThisHostOptions {
  readonly platform: 'linux' | 'macos';
  /** How paths are reached [default: by descriptor where `/proc` exists, else by path]. */
  readonly reach?: Reach;
}

export class UnixHost implements Host {
  readonly platform: 'linux' | 'macos';
  readonly ownService = ownService();
  private readonly reach: Reach;
  private readonly accountSource: AccountFiles | MacAccountRecords;
  private readonly temporaries = new Temporaries();
  private readonly workplaces: ScriptDirectories;
  private readonly lists: AccessLists;
  private readonly scriptTimeoutSecs: number;
  private readonly signal: AbortSignal | undefined;
  private readonly held: HeldPrograms | undefined;
  private readonly files: BroughtFiles;
  private readonly dataDir: string | undefined;
  private readonly records: UnpackedRecords;
  /** Read once between two commands. */
  private mounts: Mounts | null = null;

  constructor({ platform, reach, dataDir, scriptTimeoutSecs, signal, held, files }: UnixHostOptions) {
    this.platform = platform;
    this.accountSource = platform === 'macos' ? new MacAccountRecords() : new AccountFiles();
    this.reach = reach ?? bestReach();
    this.dataDir = dataDir;
    this.records = new UnpackedRecords(dataDir);
    this.workplaces = new ScriptDirectories(dataDir);
    this.lists = new AccessLists(this.workplaces);
    this.scriptTimeoutSecs = scriptTimeoutSecs ?? AGENT_DEFAULTS.script_timeout;
    this.signal = signal;
    this.held = held;
    this.files = new BroughtFiles({ files, signal });
  }

  accounts(): Accounts {
    return this.accountSource.read();
  }

  get ownPaths(): readonly string[] {
    const [, script = process.execPath] = process.argv;
    return [process.execPath, script, AGENT_CONFIG, ...(this.dataDir === undefined ? [] : [`${this.dataDir}/journal`])];
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    const walk = new SafeWalk(this.reach);
    try {
      return observe(walk, requests, this.accounts().own);
    } finally {
      walk.close();
    }
  }

  locator(): (path: string) => string {
    return createLocator();
  }

  stamp(path: string): FileStamp | null {
    const walk = new SafeWalk(this.reach);
    try {
      return stampAt(walk, path);
    } finally {
      walk.close();
    }
  }

  removeTemporaries(paths: readonly string[]): void {
    const walk = new SafeWalk(this.reach);
    try {
      for (const path of paths.filter((one) => problemOfUnixPath(one) === null)) {
        const place = walk.directory(parentOf(path));
        if (place.kind === 'directory') this.temporaries.removeDead(place.held);
      }
    } finally {
      walk.close();
    }
  }

  unstartable({
    argv: [program],
    user,
    directory,
  }: Parameters<NonNullable<Host['unstartable']>>[0]): NotStarted | null {
    const other = otherUser(user);
    if (other !== null && 'how' in other) return other;
    const found = findProgram(program, environmentOf({}));
    if (typeof found !== 'string') return found;
    return directory === undefined ? null : problemOfDirectory(directory);
  }

  obstacle(step: FileStep): StepOutcome {
    this.mounts ??= Mounts.read();
    return this.mounts.obstacleTo(step);
  }

  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    const { temporaries, reach, lists, files, records, signal } = this;
    return commit(steps, { accounts: this.accounts(), temporaries, reach, lists, files, records, signal });
  }

  unpacked(requests: readonly UnpackedRequest[]): readonly UnpackedFact[] {
    const { temporaries, reach, lists, records } = this;
    return lookAtUnpacked(requests, { accounts: this.accounts(), temporaries, reach, lists, records });
  }

  async unpackedPaths(...[path, archive]: Parameters<NonNullable<Host['unpackedPaths']>>): Promise<ChangedPaths> {
    const { files, records, signal } = this;
    const record = records.read(path);
    const isKnown = archive !== null && record?.isComplete === true && isReadingOf(record, archive);
    if (archive !== null && !isKnown) await files.bring([archive.content]);
    const wanted = archive === null || isKnown ? [] : await entriesOfArchive({ path, ...archive }, { files, signal });
    const inside = new Set([...(record?.entries ?? []), ...wanted].map((entry) => `${path}/${entry.path}`));
    return { paths: [path, ...[...inside].sort()], record: records.pathOf(path) };
  }

  bring(wanted: readonly SourceFile[]): Promise<void> {
    return this.files.bring(wanted);
  }

  async keep(paths: readonly string[]): Promise<KeptPaths> {
    const { dataDir, reach, workplaces, held } = this;
    return keepPaths(paths, { dataDir, reach, workplaces, held });
  }

  async run(command: Command, checked?: CheckedFile): Promise<CommandResult> {
    const { scriptTimeoutSecs, workplaces, signal, held, files } = this;
    const run = (given: Command) => runOnUnix(given, { scriptTimeoutSecs, workplaces, signal, held });
    const accounts = this.accounts();
    const result = checked
      ? await runOnCopy(command, checked, { run, workplaces, files, accounts })
      : await run(command);
    this.accountSource.forget();
    this.mounts = null;
    return result;
  }
}

export interface WindowsHostOptions extends ThisHostOptions {
  /** Maps `C:\…` to a path of this system [default: the path itself]. */
  readonly toNative?: ToNative | undefined;
  /** Directory of Windows [default: from the environment]. */
  readonly systemRoot?: string | undefined;
  /** Replaces a file [default: with the function of Windows]. */
  readonly replace?: Replace | undefined;
}

/** Windows has names and security IDs, but no numeric ones. */
const NO_ACCOUNTS: Accounts = {
  uid: () => undefined,
  gid: () => undefined,
  loginGroup: () => undefined,
  userName: String,
  groupName: String,
  own: { uid: 0, gid: 0 },
};

export class WindowsHost implements Host {
  readonly platform = 'windows';
  private readonly options: WindowsHostOptions;
  private readonly toNative: ToNative;
  private readonly temporaries = new Temporaries();
  private readonly workplaces: ScriptDirectories;
  private readonly files: BroughtFiles;

  constructor(options: WindowsHostOptions) {
    this.options = options;
    this.toNative = options.toNative ?? ((path) => path);
    this.files = new BroughtFiles(options);
    this.workplaces = new ScriptDirectories(options.dataDir);
  }

  accounts(): Accounts {
    return NO_ACCOUNTS;
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    return observeWindows(new WindowsWalk(this.toNative), requests, this.toNative);
  }

  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    const { toNative, temporaries, files } = this;
    const replace = this.options.replace ?? replaceKeepingAccess((command) => this.run(command));
    return commitWindows(steps, { toNative, temporaries, replace, files });
  }

  bring(wanted: readonly SourceFile[]): Promise<void> {
    return this.files.bring(wanted);
  }

  run(command: Command): Promise<CommandResult> {
    const {
      scriptTimeoutSecs = AGENT_DEFAULTS.script_timeout,
      signal,
      systemRoot = process.env.SystemRoot,
    } = this.options;
    const { workplaces } = this;
    return runOnWindows(command, { systemRoot: systemRoot ?? 'C:\\Windows', scriptTimeoutSecs, workplaces, signal });
  }

  removeTemporaries(paths: readonly string[]): void {
    const walk = new WindowsWalk(this.toNative);
    for (const path of paths.filter((one) => problemOfWindowsPath(one) === null)) {
      const place = walk.directory(parentOfWindowsPath(windowsPath(path)));
      if (place.kind === 'directory') this.temporaries.removeDead({ at: place.at, stats: place.stats, release() {} });
    }
  }
}
