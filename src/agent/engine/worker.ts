/** Entry of the engine's worker thread. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Clock } from '../../kernel/clock.js';
import { isFault, messageOf } from '../../kernel/fault.js';
import { remoteLogger } from '../../kernel/logger.js';
import { ContentRequests } from '../content/content-requests.js';
import { HeldPrograms } from '../host/held-programs.js';
import { thisHost } from '../host/this-host.js';
import { Journal } from '../journal.js';
import { guardHere } from '../snapshot/snapshot-guard.js';
import { Engine } from './engine.js';
import type { FromWorker, ToWorker, WorkerData } from './run-engine.js';

if (parentPort === null) throw new Error('this file is the entry of a worker thread');
const port = parentPort;
let { settings } = workerData as WorkerData;

const say = (message: FromWorker): void => port.postMessage(message);

const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

const logger = remoteLogger((level, message, fields) => say({ is: 'log', level, message, fields }));

const { dataDir } = workerData as WorkerData;
const files = new ContentRequests(dataDir, (file) => say({ is: 'wanted', file }));

function open(): Engine | null {
  try {
    const createHost = (signal?: AbortSignal, held?: HeldPrograms) =>
      thisHost({ signal, dataDir, held, files, ...settings });
    files.clear(clock.now());
    // Removes leftover scripts of dead processes now instead of at the next run.
    createHost();
    const journal = new Journal(dataDir);
    if (journal.loss !== null) {
      logger.error('the journal was lost in part or as a whole; the agent goes on with what is left of it', {
        reason: journal.loss,
      });
    }
    const held = new HeldPrograms();
    const engine = new Engine({ journal, guard: guardHere(held), createHost, held, clock, logger });
    engine.subscribe((report) => {
      if (report.type === 'run_finished') files.clear(clock.now());
      say({ is: 'report', report });
    });
    return engine;
  } catch (error) {
    const hint = isFault(error) ? (error.hint ?? null) : null;
    say({ is: 'failed', code: isFault(error) ? error.code : 'internal', message: messageOf(error), hint });
    return null;
  }
}

const engine = open();
if (engine === null) port.close();
else port.on('message', (message: ToWorker) => void handle(engine, message));

async function handle(running: Engine, message: ToWorker): Promise<void> {
  switch (message.do) {
    case 'begin':
      return running.begin(message.head, message.content);
    case 'cancel':
      return running.cancel(message.runId);
    case 'acknowledge':
      return running.acknowledge(message.runId);
    case 'resume':
      return running.resume(message.runId, message.from);
    case 'confirmed':
      return running.confirmed(message.runId);
    case 'reached':
      return running.reached();
    case 'unreached':
      return running.unreached(message.reason);
    case 'fetched':
      return files.answer(message.sha256, message.failure);
    case 'settings':
      settings = message.settings;
      return;
    case 'disconnected':
      return running.disconnected();
    case 'inventory':
      return say({ is: 'inventory', runs: await running.inventory() });
    case 'stop':
      await running.stop();
      port.close();
  }
}
