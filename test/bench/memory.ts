/** What the programs that always run take of the memory while nothing happens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Part, Row } from './row.js';
import { residentMemory, startFleet } from './terminal/fleet.js';

const MEGABYTE = 1e6;
const BARE = 'bare Node with ws over TLS';
/** After what the start has done, in milliseconds. */
const REST = 10_000;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const memory: Part = {
  name: 'memory',
  summary: 'resident memory of an idle agent and an idle orchestrator; beside a bare Node with a connection open',
  run: async ({ say }) => {
    const fleet = await startFleet();
    const bare = startBare();
    try {
      say('memory: nothing happens');
      await wait(REST);
      const limit = residentMemory(bare.pid as number) / MEGABYTE;
      const agent = fleet.agentMemory() / MEGABYTE;
      const orchestrator = fleet.orchestratorMemory() / MEGABYTE;
      return [
        row('the agent', agent, { limit, goal: `at most 1.2 x ${BARE}`, isMet: agent <= 1.2 * limit }),
        row('the orchestrator', orchestrator, { limit, goal: 'at most 120 MB', isMet: orchestrator <= 120 }),
      ];
    } finally {
      bare.kill();
      await fleet.stop();
    }
  },
};

const row = (
  what: string,
  ours: number,
  { limit, goal, isMet }: { readonly limit: number; readonly goal: string; readonly isMet: boolean },
): Row => ({ what: `memory: ${what}, idle`, unit: 'MB', ours, beside: { [BARE]: limit }, goal, isMet });

/** Connected to itself, so that the other end costs nothing but one socket. */
function startBare(): ChildProcess {
  const program = `
import { createServer } from 'node:https';
import { selfSignedEd25519 } from './dist/src/identity/certificate.js';
import { generateKeyPairSync } from 'node:crypto';
import { WebSocket, WebSocketServer } from 'ws';
const { privateKey } = generateKeyPairSync('ed25519');
const { certPem } = selfSignedEd25519(privateKey);
const server = createServer({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }), cert: certPem });
new WebSocketServer({ server });
server.listen(0, '127.0.0.1', () => new WebSocket('wss://127.0.0.1:' + server.address().port, { rejectUnauthorized: false }));
`;
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
