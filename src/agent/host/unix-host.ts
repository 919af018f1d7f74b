/** The real Host of Linux and macOS. Make one for each run: it remembers which directories it has tidied. */
import type { Command, CommandResult } from '../../resources/command.js';
import type { Accounts, FileStep, Host, ObserveRequest, PathFact, StepOutcome } from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import { AGENT_DEFAULTS } from '../../settings/agent.js';
import { AccountFiles } from './accounts.js';
import { commit } from './commit.js';
import { bestReach, type Reach } from './footing.js';
import { MacAccountRecords } from './mac-account-records.js';
import { observe } from './observe.js';
import { runCommand } from './run-command.js';
import { SafeWalk } from './safe-walk.js';
import { Temporaries } from './temporaries.js';
import { Workplaces } from './workplace.js';

export interface UnixHostOptions {
  readonly platform: 'linux' | 'macos';
  /** By descriptor where `/proc` is there, else by path. */
  readonly reach?: Reach;
  /** The agent's own directory, for what programs are given to read; else the system's temporary directory serves. */
  readonly dataDir?: string | undefined;
  /** Seconds that a script may take. */
  readonly scriptTimeoutSecs?: number | undefined;
  /** Aborted when the run is cancelled or the agent stops; the reason tells which. */
  readonly signal?: AbortSignal | undefined;
}

export class UnixHost implements Host {
  readonly platform: 'linux' | 'macos';
  private readonly reach: Reach;
  private readonly accountSource: AccountFiles | MacAccountRecords;
  private readonly temporaries = new Temporaries();
  private readonly workplaces: Workplaces;
  private readonly scriptTimeoutSecs: number;
  private readonly signal: AbortSignal | undefined;

  constructor({ platform, reach, dataDir, scriptTimeoutSecs, signal }: UnixHostOptions) {
    this.platform = platform;
    this.accountSource = platform === 'macos' ? new MacAccountRecords() : new AccountFiles();
    this.reach = reach ?? bestReach();
    this.workplaces = new Workplaces(dataDir);
    this.scriptTimeoutSecs = scriptTimeoutSecs ?? AGENT_DEFAULTS.script_timeout;
    this.signal = signal;
  }

  accounts(): Accounts {
    return this.accountSource.read();
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    const walk = new SafeWalk(this.reach);
    try {
      return observe(walk, requests);
    } finally {
      walk.close();
    }
  }

  tidy(paths: readonly string[]): void {
    const walk = new SafeWalk(this.reach);
    try {
      for (const path of paths.filter((one) => problemOfUnixPath(one) === null)) {
        const place = walk.directory(parentOf(path));
        if (place.kind === 'directory') this.temporaries.sweep(place.footing);
      }
    } finally {
      walk.close();
    }
  }

  commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    return commit(steps, { accounts: this.accounts(), temporaries: this.temporaries, reach: this.reach });
  }

  async run(command: Command): Promise<CommandResult> {
    const { scriptTimeoutSecs, workplaces, signal } = this;
    const result = await runCommand(command, { scriptTimeoutSecs, workplaces, signal });
    this.accountSource.forget();
    return result;
  }
}
