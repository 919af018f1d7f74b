/** The checks of `orch doctor` on this machine: runtime, native modules, and the agent and the orchestrator, if it has them. */
import { type DoctorCheck, guarded } from '../src/programs/doctor-check.js';
import { examineAgent } from './doctor/agent.js';
import { examineRuntime } from './doctor/runtime.js';
import { examineServe } from './doctor/serve.js';

export async function examineMachine(): Promise<readonly DoctorCheck[]> {
  const needs = { store: false, terminals: false };
  const agent = await guarded('agent', () => examineAgent(needs));
  const serve = await guarded('serve', () => examineServe(needs));
  const runtime = await guarded('runtime', () => examineRuntime(needs));
  return [...runtime, ...agent, ...serve];
}
