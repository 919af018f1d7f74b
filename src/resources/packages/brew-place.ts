/** Where Homebrew is, and as whom it has to be run: it refuses to run as root. */
import { exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host } from '../host.js';
import type { CommandRefusal } from '../kind.js';

/** On Macs with processors of Apple and of Intel; `repository` holds brew itself and belongs to who installed it. */
const PLACES = [
  { program: '/opt/homebrew/bin/brew', repository: '/opt/homebrew' },
  { program: '/usr/local/bin/brew', repository: '/usr/local/Homebrew' },
] as const;

export interface Brew {
  /** What to run before the verb: without colours, hints and an update of its own. */
  readonly argv: readonly [string, ...string[]];
  /** Where brew itself lies. */
  readonly repository: string;
}

/** `env` sets the variables, because `sudo` hands none through. */
const ENVIRONMENT = [
  '/usr/bin/env',
  'HOMEBREW_NO_AUTO_UPDATE=1',
  'HOMEBREW_NO_ENV_HINTS=1',
  'HOMEBREW_NO_COLOR=1',
  'HOMEBREW_NO_EMOJI=1',
] as const;

const WHO = { argv: ['/usr/bin/id', '-u'] } as const;

export async function findBrew(host: Host): Promise<Brew | CommandRefusal> {
  const facts = host.observe(PLACES.map(({ repository }) => ({ path: repository, content: false, entries: false })));
  const at = facts.findIndex(({ type }) => type === 'directory');
  const [place, fact] = [PLACES[at], facts[at]];
  if (place === undefined || fact?.type !== 'directory') {
    const where = PLACES.map(({ repository }) => repository).join(' or ');
    return { code: 'command_missing', message: `Homebrew is not installed on this machine: there is no ${where}` };
  }
  const { program, repository } = place;
  const who = await host.run(WHO);
  if (!exitedWith(who, 0)) return commandFailure(WHO, who);
  if (who.stdout.trim() !== '0') return { argv: [...ENVIRONMENT, program], repository };
  if (fact.uid === 0) {
    const message = `brew refuses to run as root, and ${repository} belongs to root; give it to the user that brew shall run as (chown -R USER ${repository})`;
    return { code: 'package_manager_broken', message };
  }
  return { argv: ['/usr/bin/sudo', '-n', '-H', '-u', `#${fact.uid}`, '--', ...ENVIRONMENT, program], repository };
}
