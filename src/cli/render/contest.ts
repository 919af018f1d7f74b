/** Words of commands about an agent whose key several machines have. */
import type { Agent } from '../../contract/agents.js';

type Contest = NonNullable<Agent['contest']>;
type Machine = Contest['machines'][number];

const NUMBERS: readonly string[] = ['no', 'one', 'two', 'three', 'four'];

export const machineText = ({ hostname, address }: Pick<Machine, 'hostname' | 'address'>): string =>
  `${address} as ${hostname}`;

/** Returns such as `two machines with this key, last seen 192.0.2.2 as web1-clone`; null without a contest. */
export function contestText({ contest }: Agent): string | null {
  const machines = contest?.machines ?? [];
  const [newest] = machines;
  if (newest === undefined) return null;
  const other = machines.find(({ connected }) => !connected) ?? newest;
  // Machines with one host name and address are listed once.
  const count = Math.max(machines.length, 2);
  const number = NUMBERS[count] ?? String(count);
  return `${number} machines with this key, last seen ${machineText(other)}`;
}
