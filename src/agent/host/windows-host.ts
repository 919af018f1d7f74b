/** The real Host of Windows. Make one for each run: it remembers which directories it has tidied. */
import type { Command, CommandResult } from '../../resources/command.js';
import type { Accounts, FileStep, Host, ObserveRequest, PathFact, StepOutcome } from '../../resources/host.js';
import { parentOfWindowsPath, problemOfWindowsPath, windowsPath } from '../../resources/windows/windows-path.js';
import { AGENT_DEFAULTS } from '../../settings/agent.js';
import { Temporaries } from './temporaries.js';
import { commitWindows, type Replace } from './windows-commit.js';
import { observeWindows } from './windows-observe.js';
import { replaceKeepingAccess } from './windows-replace.js';
import { runOnWindows } from './windows-run.js';
import { type ToNative, WindowsWalk } from './windows-walk.js';
import { Workplaces } from './workplace.js';

export interface WindowsHostOptions {
  /** The agent's own directory, for what programs are given to read; else the system's temporary directory serves. */
  readonly dataDir?: string | undefined;
  /** Seconds that a script may take. */
  readonly scriptTimeoutSecs?: number | undefined;
  /** Aborted when the run is cancelled or the agent stops; the reason tells which. */
  readonly signal?: AbortSignal | undefined;
  /** Where `C:\…` is; the path itself unless the drives are somewhere else. */
  readonly toNative?: ToNative | undefined;
  /** Where Windows is; that of the environment unless told. */
  readonly systemRoot?: string | undefined;
  /** How a file takes the place of another; as Windows does it, unless told. */
  readonly replace?: Replace | undefined;
}

/** Windows has names and security ids, no numbers. */
const NO_ACCOUNTS: Accounts = {
  uid: () => undefined,
  gid: () => undefined,
  userName: String,
  groupName: String,
  own: { uid: 0, gid: 0 },
};

export class WindowsHost implements Host {
  readonly platform = 'windows';
  private readonly options: WindowsHostOptions;
  private readonly toNative: ToNative;
  private readonly temporaries = new Temporaries();
  private readonly workplaces: Workplaces;

  constructor(options: WindowsHostOptions) {
    this.options = options;
    this.toNative = options.toNative ?? ((path) => path);
    this.workplaces = new Workplaces(options.dataDir);
  }

  accounts(): Accounts {
    return NO_ACCOUNTS;
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    return observeWindows(new WindowsWalk(this.toNative), requests, this.toNative);
  }

  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    const { toNative, temporaries } = this;
    const replace = this.options.replace ?? replaceKeepingAccess((command) => this.run(command));
    return commitWindows(steps, { toNative, temporaries, replace });
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

  tidy(paths: readonly string[]): void {
    const walk = new WindowsWalk(this.toNative);
    for (const path of paths.filter((one) => problemOfWindowsPath(one) === null)) {
      const place = walk.directory(parentOfWindowsPath(windowsPath(path)));
      if (place.kind === 'directory') this.temporaries.sweep({ at: place.at, stats: place.stats, release() {} });
    }
  }
}
