/** What the agent sends for a session: greets it when it comes, and takes its output, its acks and its exit. */
import { Fault } from '../../../src/kernel/fault.js';
import { validator } from '../../../src/kernel/validator.js';
import { ExitSchema } from '../../../src/terminal/exit.js';
import { ackFrame, type Frame, placeFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import type { SessionCore } from './session-core.js';
import { BY_AGENT } from './session-ending.js';

const isExit = validator(ExitSchema);

export class AgentFrames {
  private readonly core: SessionCore;
  private readonly onInStep: () => void;

  /** @param onInStep the agent has said where it is */
  constructor(core: SessionCore, onInStep: () => void) {
    this.core = core;
    this.onInStep = onInStep;
  }

  /** It is here: it is told from where it goes on, and listened to. */
  greet(): void {
    const { agent, input, pace, people, relay } = this.core;
    if (!agent.isHere || agent.hello === null) return;
    const { kept_from: keptFrom, taken: hasTaken } = agent.hello;
    if (keptFrom > relay.received) this.miss(keptFrom);
    agent.startOver();
    pace();
    input.agentCame(hasTaken);
    agent.sendWaiting();
    agent.listen((frame, data) => this.take(frame, data));
    this.onInStep();
    const { taken } = input;
    people.writer?.socket.send(ackFrame(taken, taken + TERMINAL_LIMITS.inputBacklog));
    people.tell({ kind: 'agent_link', connected: true });
  }

  /** Output that the agent does not have any more. */
  private miss(from: number): void {
    const { facts, logger, recording, relay } = this.core;
    logger.warn('output of a terminal was lost', { session_id: facts.id, from: relay.received, to: from });
    relay.mark(`${from - relay.received} bytes of output were lost`);
    relay.skipTo(from);
    recording.stop('truncated', 'output was lost');
  }

  /** The one who types decides about input that has waited for long. */
  private placed(offset: number): void {
    const { input, people } = this.core;
    const { writer } = people;
    const place = input.placed(offset, writer?.gate.canAsk ?? true);
    if (place === null || writer === null) return;
    writer.gate.shut();
    writer.socket.send(placeFrame(place));
  }

  private take(frame: Frame, data: Buffer): void {
    const { agent, clock, course, end, input, pace, people, relay } = this.core;
    if (course.isOver) return;
    switch (frame.type) {
      case 'output':
        relay.take(frame, data, clock.monotonic());
        if (relay.received > agent.allowed) agent.close(TERMINAL_CLOSE.overrun, 'more output than was asked for');
        pace();
        return;
      case 'ack':
        input.acked(frame.consumed);
        people.writer?.socket.send(data);
        return;
      case 'place':
        this.placed(frame.offset);
        return;
      case 'echo':
        people.writer?.socket.send(data);
        return;
      case 'exit':
        if (!isExit.check(frame.value)) throw new Fault('protocol_violation', 'the peer sent an exit that is none');
        if (!BY_AGENT.has(frame.value.reason)) {
          const { reason } = frame.value;
          throw new Fault('protocol_violation', `the peer sent the end ${reason}, which is not for it to tell`);
        }
        end({ ...frame.value, final_offset: relay.received });
        return;
      case 'note':
      case 'eof':
      case 'unknown':
        return;
      default:
        throw new Fault('protocol_violation', `the peer sent ${frame.type}`);
    }
  }
}
