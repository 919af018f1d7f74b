/** Client of the control socket: sends a request to the orchestrator running on a data directory. */
import { connect } from 'node:net';
import { join } from 'node:path';
import { Fault, isFaultCode, messageOf, systemCodeOf } from '../src/kernel/fault.js';
import { validator } from '../src/kernel/validator.js';
import { CONTROL_SOCKET, ControlAnswerSchema, type ControlRequest, MAX_LINE } from './control-protocol.js';

const answers = validator(ControlAnswerSchema);

/**
 * Returns the result. Throws `unreachable` when no orchestrator runs there, `permission_denied` when another user
 * owns it, `protocol_violation` for an unreadable answer, or the fault that the orchestrator returns.
 */
export async function askOrchestrator(
  dataDir: string,
  request: ControlRequest,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = parse(await exchange(join(dataDir, CONTROL_SOCKET), `${JSON.stringify(request)}\n`, dataDir));
  if (!answers.check(answer))
    throw new Fault('protocol_violation', `the orchestrator on ${dataDir} answered nothing useful`);
  if (answer.ok) return answer.result;
  const { code, message, hint } = answer.error;
  throw new Fault(isFaultCode(code) ? code : 'internal', message, hint === null ? {} : { hint });
}

function exchange(path: string, line: string, dataDir: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(path);
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(line));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_LINE) socket.destroy();
    });
    socket.on('error', (error) => reject(notReached(dataDir, error)));
    socket.on('close', () => resolve(text));
  });
}

function notReached(dataDir: string, cause: unknown): Fault {
  const code = systemCodeOf(cause) ?? '';
  if (code === 'EACCES' || code === 'EPERM') {
    return new Fault('permission_denied', `the orchestrator on ${dataDir} belongs to another user`, {
      hint: 'run this as the user who runs orch serve',
      cause,
    });
  }
  const why = ['ENOENT', 'ECONNREFUSED'].includes(code) ? 'no orchestrator runs on' : `${messageOf(cause)}:`;
  return new Fault('unreachable', `${why} ${dataDir}`, {
    hint: 'start it with orch serve, or name its data directory with --data-dir',
    cause,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
