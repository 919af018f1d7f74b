/** The real Host of Linux and macOS. Make one for each run: it remembers which directories it has tidied. */
import type { Accounts, Host, ObserveRequest, PathFact, Step, StepOutcome } from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix-path.js';
import { AccountFiles } from './accounts.js';
import { commit } from './commit.js';
import { bestReach, type Reach } from './footing.js';
import { observe } from './observe.js';
import { SafeWalk } from './safe-walk.js';
import { Temporaries } from './temporaries.js';

export interface UnixHostOptions {
  readonly platform: 'linux' | 'macos';
  /** By descriptor where `/proc` is there, else by path. */
  readonly reach?: Reach;
}

export class UnixHost implements Host {
  readonly platform: 'linux' | 'macos';
  private readonly reach: Reach;
  private readonly accountFiles = new AccountFiles();
  private readonly temporaries = new Temporaries();

  constructor({ platform, reach }: UnixHostOptions) {
    this.platform = platform;
    this.reach = reach ?? bestReach();
  }

  accounts(): Accounts {
    return this.accountFiles.read();
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

  commit(steps: readonly Step[]): Promise<readonly StepOutcome[]> {
    return commit(steps, { accounts: this.accounts(), temporaries: this.temporaries, reach: this.reach });
  }
}
