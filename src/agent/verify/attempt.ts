/** One attempt of a health check. */
import { connect } from 'node:net';
import { messageOf } from '../../kernel/fault.js';
import type { DesiredCheck } from '../../resources/checks/check.js';
import {
  CHECK_KINDS,
  CHECK_VALIDATORS,
  type CheckBodies,
  type CheckKind,
  checkPlatforms,
} from '../../resources/checks/check-kinds.js';
import { type Command, commandFailure, withLines } from '../../resources/command.js';
import { scriptCommand } from '../../resources/script.js';
import {
  type Attempt,
  type AttemptContext,
  connectionProblem,
  HEALTHY,
  impossible,
  seconds,
  unhealthy,
} from './attempt-result.js';
import { requestHttp } from './http-attempt.js';
import { observeUnit } from './unit-attempt.js';

/** Makes an attempt. Never rejects. Its reasons may hold secrets. */
export async function attempt(check: DesiredCheck, context: AttemptContext): Promise<Attempt> {
  const kind = CHECK_KINDS.find((known) => known === check.kind);
  if (kind === undefined || !isBody(kind, check.body)) {
    return impossible(`this agent does not know such a check of kind ${check.kind}; upgrade the agent`);
  }
  try {
    return await ATTEMPTS[kind](check.body as never, context, check);
  } catch (error) {
    return unhealthy(messageOf(error));
  }
}

const isBody = (kind: CheckKind, body: DesiredCheck['body']): boolean =>
  CHECK_VALIDATORS[kind].check(kind === 'unit' ? body.name : body);

type Attempts = {
  readonly [K in CheckKind]: (body: CheckBodies[K], context: AttemptContext, check: DesiredCheck) => Promise<Attempt>;
};

const ATTEMPTS: Attempts = {
  script: runScript,
  http: (body, context) => requestHttp(body, context),
  tcp: (body, context) => connectTcp(body, context),
  unit: (body, context) => observeUnit(body.name, context),
};

async function runScript(
  { program, run }: CheckBodies['script'],
  { host, timeoutMs, quotable }: AttemptContext,
  check: DesiredCheck,
): Promise<Attempt> {
  const platforms = checkPlatforms('script', check.body);
  if (platforms !== null && !platforms.includes(host.platform)) {
    return impossible(
      `scripts of ${program} run on ${platforms.join(' and ')}, and this is a machine with ${host.platform}`,
    );
  }
  const command: Command = { ...scriptCommand(program, run), timeoutSecs: timeoutMs / 1000 };
  const result = quotable(await host.run(command));
  const { end } = result;
  const said = (sentence: string) => unhealthy(withLines(sentence, result, 3));
  switch (end.how) {
    case 'exited':
      return end.code === 0 ? HEALTHY : said(`ended with status ${end.code}`);
    case 'killed':
      return said(`was ended by ${end.signal}`);
    case 'timed-out':
      return said(`did not end within ${seconds(timeoutMs)}`);
    case 'cancelled':
      return unhealthy('was stopped');
    case 'not-started':
      return unhealthy(commandFailure(command, result).message);
  }
}

function connectTcp({ host, port }: CheckBodies['tcp'], { signal, timeoutMs }: AttemptContext): Promise<Attempt> {
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    const settle = (found: Attempt) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      socket.destroy();
      resolve(found);
    };
    const timer = setTimeout(
      () => settle(unhealthy(`${place} did not accept a connection within ${seconds(timeoutMs)}`)),
      timeoutMs,
    );
    const stop = () => settle(unhealthy('was stopped'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    socket.once('connect', () => settle(HEALTHY));
    socket.on('error', (error) => settle(unhealthy(`${place} ${connectionProblem(error)}`)));
  });
}
