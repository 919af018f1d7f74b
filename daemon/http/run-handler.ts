/** Runs the handler of a route, and renders its answer or the fault it throws. */
import { generalFaults } from '../../src/contract/faults.js';
import type { Operator } from '../../src/contract/operators.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { type Fault, messageOf } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { NO_RIGHTS, type Rights } from '../core/rights.js';
import type { Exchange } from './exchange.js';
import type { Events } from './handler.js';
import { ifMatchOf } from './if-match.js';
import { answerRenderer, faultOfError, pieceChecker, type Rendered, renderFault } from './rendered.js';
import type { Input } from './request-input.js';
import type { EventStream, LineStream } from './streams.js';

/** A handler whose route is unknown to the type checker; its answers are checked at runtime instead. */
export type AnyHandler = (call: AnyCall) => Promise<AnyAnswer>;

/** A class, because an object literal with a getter gets a hidden class of its own for each request. */
class AnyCall implements Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly context: RequestContext;
  readonly operator: Operator | null;
  readonly rights: Rights | null;
  readonly token: string | null;
  readonly stream: ((line: unknown) => Promise<void>) | null;
  readonly events: Events<unknown, unknown> | null;
  private readonly exchange: Exchange;

  constructor(
    exchange: Exchange,
    { params, query, body }: Input,
    { ifMatch, ...outlets }: Pick<AnyCall, 'stream' | 'events'> & Pick<RequestContext, 'ifMatch'>,
  ) {
    const { session, requestId, address, token } = exchange;
    this.params = params;
    this.query = query;
    this.body = body;
    this.rights = session?.rights ?? null;
    const rights = this.rights ?? NO_RIGHTS;
    this.context = { actor: actorOf(session?.operator), rights, requestId, address, ifMatch };
    this.operator = session?.operator ?? null;
    this.token = token;
    this.stream = outlets.stream;
    this.events = outlets.events;
    this.exchange = exchange;
  }

  get baseUrl(): string {
    return this.exchange.baseUrl;
  }

  keepPermitted(check: (rights: Rights) => Promise<void>): void {
    this.exchange.stillPermitted = check;
  }

  get signal(): AbortSignal {
    return this.exchange.cancellation.signal;
  }
}

interface AnyAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Targets of a streamed answer; null when the client gets a plain one. */
export interface StreamTargets {
  readonly lines: LineStream | null;
  readonly events: EventTarget | null;
}

interface EventTarget {
  readonly stream: EventStream;
  /** `Last-Event-ID` of the request. */
  readonly lastId: string | null;
}

export interface RunOptions extends Pick<Core, 'logger'> {
  /** True checks answers, stream lines and faults against the contract, and answers 500 on a mismatch. */
  readonly validateAnswers: boolean;
}

/** Creates the function that runs the handler of a route. It never rejects. */
export function runner(route: RouteSpec, handler: AnyHandler, { logger, validateAnswers }: RunOptions) {
  const render = answerRenderer(route, validateAnswers);
  const checkPiece = validateAnswers ? pieceChecker(route, route.stream ?? route.events) : () => {};
  const checkGap = validateAnswers ? pieceChecker(route, route.gaps) : () => {};
  // `cancelled` is always allowed, because its answer goes to a disconnected client.
  const declared = new Set([...route.faults, ...generalFaults(route), 'cancelled']);
  const write = (stream: LineStream) => (line: unknown) => {
    checkPiece(line);
    return stream.write(line);
  };
  const eventsOf = ({ stream, lastId }: EventTarget): Events<unknown, unknown> => ({
    lastId,
    open: (place) => stream.open(place),
    send: (id, data) => {
      checkPiece(data);
      return stream.send(id, data);
    },
    gap: (data) => {
      checkGap(data);
      return stream.gap(data);
    },
    beat: (place) => stream.beat(place),
  });
  return async (exchange: Exchange, input: Input, { lines, events }: StreamTargets): Promise<Rendered> => {
    const { requestId } = exchange;
    try {
      const ifMatch = ifMatchOf(exchange.request.headers['if-match'], route);
      const outlets = { stream: lines && write(lines), events: events && eventsOf(events), ifMatch };
      return render(await handler(new AnyCall(exchange, input, outlets)));
    } catch (error) {
      const fault = checkedFault(faultOfError(error, route.faults));
      if (fault.code === 'internal') {
        const { stack } = rootOf(fault);
        logger.error('a request failed', { request_id: requestId, route: route.id, reason: messageOf(error), stack });
      }
      return renderFault(fault, requestId, route.statuses);
    }
  };

  function checkedFault(fault: Fault): Fault {
    if (!validateAnswers || declared.has(fault.code)) return fault;
    return faultOfError(
      new Error(`${route.id} gave the fault ${fault.code}, which is not in its contract`, { cause: fault }),
    );
  }
}

const actorOf = (operator: Operator | undefined): Party =>
  operator ? { id: operator.operator_id, name: operator.username, type: 'operator' } : SYSTEM;

/** Returns the error that an `internal` fault wraps. */
const rootOf = (fault: Fault): Error => (fault.cause instanceof Error ? fault.cause : fault);
