/** The HTTP API: requests a second, what grants cost, logins, pages of the audit log, long lists. */
import { Program } from '../programs.js';
import type { Bench, Part } from '../row.js';
import { measureAgentsList } from './agents-list.js';
import { measureAudit } from './audit.js';
import { FilledOrchestrator } from './filled-orchestrator.js';
import { measureGrants } from './grants.js';
import { measureLogin } from './login.js';
import { measureThroughput } from './throughput.js';

/** The shared parts of the measurements of the API; each is made at its first use. */
export interface ApiBench {
  readonly measure: Bench['measure'];
  readonly say: Bench['say'];
  readonly missing: Bench['missing'];
  readonly filled: () => Promise<FilledOrchestrator>;
  /** Makes the requests. */
  readonly load: () => Promise<Program>;
}

const sharedBy = ({ measure, say, missing, shared }: Bench): ApiBench => ({
  measure,
  say,
  missing,
  filled: shared(
    () => FilledOrchestrator.start(),
    (made) => made.stop(),
  ),
  load: shared(
    async () => new Program('http-load'),
    (made) => made.stop(),
  ),
});

export const api: Part = {
  name: 'api',
  summary: 'requests a second, logins, lists of 5,000 agents; beside fastify and bare Node',
  run: async (bench) => {
    const shared = sharedBy(bench);
    await measureAgentsList(shared);
    await measureThroughput(shared);
    await measureGrants(shared);
    await measureLogin(shared);
  },
};

export const audit: Part = {
  name: 'audit',
  summary: 'pages of an audit log of a million events, which are written first',
  run: (bench) => measureAudit(sharedBy(bench)),
};
