/** The agent as `orch agent connect` wires it, but it dials again at once: `agent.mjs HOST:PORT KEY DATA_DIR`. */
import { runAgent } from '../../../dist/src/agent/agent.js';
import { createEngine } from '../../../dist/src/agent/engine/engine-thread.js';
import { parseAddress } from '../../../dist/src/agent/link/orchestrator-address.js';
import { permissionsOf } from '../../../dist/src/agent/permissions.js';
import { AgentSettingsFile } from '../../../dist/src/agent/settings-file.js';

const [target, orchestratorKey, dataDir] = process.argv.slice(2);
const logger = {
  debug() {},
  info() {},
  warn() {},
  error: (message, fields) => console.error(message, fields),
  child: () => logger,
};
const file = await AgentSettingsFile.open({ path: `${dataDir}/agent.yaml`, isOptional: true, logger });

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
    metrics: () => ({ enabled: true, interval: 30 }),
    permissions: () => permissionsOf(file.settings),
    factsDirectory: () => `${dataDir}/facts.d`,
  },
  new AbortController().signal,
);
