/** The memory of the programs that always run, while nothing happens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { atMost, atMostTimes, OURS, type Part, rowOf } from './row.js';
import { sized } from './sized.js';
import { residentMemory, startFleet } from './terminal/fleet.js';

const MEGABYTE = 1e6;
const BARE = 'bare Node with ws over TLS';
/** After what the start has done, in milliseconds. */
const REST = sized(10_000, 200);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const AGENT = 'memory: the agent, idle';
const ORCHESTRATOR = 'memory: the orchestrator, idle';

export const memory: Part = {
  name: 'memory',
  summary: 'resident memory of an idle agent and an idle orchestrator; beside a bare Node with a connection open',
  run: ({ measure }) =>
    measure([AGENT, ORCHESTRATOR], async () => {
      const fleet = await startFleet();
      const bare = startBare();
      try {
        await wait(REST);
        const limit = [residentMemory(bare.pid as number) / MEGABYTE];
        const row = (what: string, bytes: number) => ({
          what,
          unit: 'MB' as const,
          runs: new Map([
            [OURS, [bytes / MEGABYTE]],
            [BARE, limit],
          ]),
        });
        return [
          rowOf({ ...row(AGENT, fleet.agentMemory()), goal: atMostTimes(1.2, BARE) }),
          rowOf({ ...row(ORCHESTRATOR, fleet.orchestratorMemory()), goal: atMost(120, 'MB') }),
        ];
      } finally {
        bare.kill();
        await fleet.stop();
      }
    }),
};

/** Connected to itself, so that the other end costs nothing but one socket. */
export function startBare(): ChildProcess {
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
