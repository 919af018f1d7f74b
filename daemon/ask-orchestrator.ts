/** Client of the control socket: sends a request to the orchestrator running on a data directory. */
import { connect, type Socket } from 'node:net';
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
  return resultOf(dataDir, await textOf(await askedSocket(dataDir, request)));
}

/** Returns the result of an answer. Throws `protocol_violation`, or the fault that the orchestrator returns. */
export function resultOf(dataDir: string, line: string): Readonly<Record<string, unknown>> {
  const answer = parse(line);
  if (!answers.check(answer))
    throw new Fault('protocol_violation', `the orchestrator on ${dataDir} answered nothing useful`);
  if (answer.ok) return answer.result;
  const { code, message, hint } = answer.error;
  throw new Fault(isFaultCode(code) ? code : 'internal', message, hint === null ? {} : { hint });
}

/** Connects to the control socket and sends the request. Throws `unreachable`, `permission_denied`. */
export function askedSocket(dataDir: string, request: ControlRequest): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(dataDir, CONTROL_SOCKET));
    const failed = (error: Error) => reject(notReached(dataDir, error));
    socket.once('error', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      // The close event follows.
      socket.on('error', () => undefined);
      socket.write(`${JSON.stringify(request)}\n`);
      resolve(socket);
    });
  });
}

function textOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_LINE) socket.destroy();
    });
    socket.on('close', () => resolve(text));
  });
}

function notReached(dataDir: string, cause: unknown): Fault {
  const code = systemCodeOf(cause) ?? '';
  if (code === 'EACCES' || code === 'EPERM') {
    return new Fault('permission_denied', `the orchestrator on ${dataDir} belongs to another user`, {
      hint: 'run this as root or as the user who runs orch serve, for example with sudo',
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
