/** The agent as `orch agent connect` wires it: `agent.mjs HOST:PORT KEY DATA_DIR`. It is there to be killed. */
import { runAgent } from '../../../../dist/src/agent/agent.js';
import { createEngine } from '../../../../dist/src/agent/engine/engine-thread.js';
import { parseAddress } from '../../../../dist/src/agent/link/orchestrator-address.js';
import { permissionsOf } from '../../../../dist/src/agent/permissions.js';
import { AgentSettingsFile } from '../../../../dist/src/agent/settings-file.js';
import { createTerminals } from '../../../../dist/src/agent/terminal/create-terminals.js';

const [target, orchestratorKey, dataDir] = process.argv.slice(2);
const logger = { debug() {}, info() {}, warn: console.error, error: console.error, child: () => logger };
const file = await AgentSettingsFile.open({ path: `${dataDir}/agent.yaml`, isOptional: true, logger });
const stopper = new AbortController();
process.once('SIGTERM', () => stopper.abort());
file.watch(stopper.signal);

await runAgent(
  {
    target: parseAddress(target),
    dataDir,
    orchestratorKey,
    trustOnFirstUse: false,
    ask: null,
    logger,
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    random: () => 0,
    createEngine: (directory) => createEngine({ dataDir: directory, logger, file }),
    createTerminals: (directory) => createTerminals({ dataDir: directory, logger, file }),
    metrics: () => ({ enabled: false, interval: 30 }),
    permissions: () => permissionsOf(file.settings),
    factsDirectory: () => `${dataDir}/facts.d`,
  },
  stopper.signal,
);
