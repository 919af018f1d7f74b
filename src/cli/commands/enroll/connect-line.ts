/** The line that makes a machine an agent. */
import type { CreatedEnrolmentToken } from '../../../contract/enrolment-tokens.js';

/** `HOST:PORT` for agents: what the orchestrator says, else the host that its API was reached at. */
export function placeOfAgents(
  { agent_host: host, agent_port: port }: Pick<CreatedEnrolmentToken, 'agent_host' | 'agent_port'>,
  api: URL,
): string {
  const name = host ?? api.hostname;
  return `${name.includes(':') && !name.startsWith('[') ? `[${name}]` : name}:${port}`;
}

export const isLoopback = (place: string): boolean => /^(127\.|localhost:|\[::1\])/.test(place);

/**
 * The token goes through a pipe: `echo` is a part of the shell, so no list of processes shows it, and neither does the
 * log of sudo when that is put before `orch`. It needs no quotes in any shell.
 */
export const connectLine = (token: string, place: string): string =>
  `echo ${token} | orch agent connect ${place} --token -`;
