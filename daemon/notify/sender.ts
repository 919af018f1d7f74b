/** Makes one attempt to send a message through a channel and reports its outcome. */
import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { ChannelCipher } from '../secrets/ciphers.js';
import type { Attempt, DeliveryReason } from './attempt.js';
import { pauseOf } from './channel-pause.js';
import { type ChannelRow, configOf } from './channel-store.js';
import { CHANNEL_KINDS, typeOf } from './channels/channel-types.js';
import { DeliveryProblem } from './delivery-log.js';
import type { DialOptions } from './dial.js';
import { type Message, plainText } from './message.js';
import { post } from './post.js';
import type { Reply } from './response-reader.js';

interface SenderOptions extends Pick<Core, 'clock'> {
  readonly cipher: ChannelCipher;
  readonly network: DialOptions;
}

export class Sender {
  private readonly options: SenderOptions;

  constructor(options: SenderOptions) {
    this.options = options;
  }

  /** Sends the message and returns the outcome; a failed delivery is returned, not thrown. Rejects when `cancel` is aborted. */
  async attempt(channel: ChannelRow, message: Message, cancel: AbortSignal): Promise<Attempt> {
    const { clock, cipher, network } = this.options;
    try {
      const kind = CHANNEL_KINDS[typeOf(channel)];
      const outgoing = kind.read(configOf(cipher, channel)).request(message, clock.now());
      const reply = await post(outgoing, network, cancel);
      return attemptOf(reply, pauseOf(reply, kind, clock.now()));
    } catch (error) {
      if (error instanceof DeliveryProblem) return failed(error.reason, error.message);
      if (!isFault(error, 'secrets_locked')) throw error;
      return failed('secrets_locked', 'the configuration cannot be decrypted; set it again');
    }
  }
}

/** Maximum UTF-16 code units of an error, which may quote the receiver. */
const ERROR = 300;

const failed = (reason: DeliveryReason, error: string): Attempt => ({
  delivered: false,
  status: null,
  reason,
  error: plainText(error, ERROR),
  pauseMs: null,
});

function attemptOf({ status }: Reply, pauseMs: number | null): Attempt {
  if (status >= 200 && status < 300) return { delivered: true, status, reason: null, error: null, pauseMs: null };
  const note = status >= 300 && status < 400 ? ', and redirects are not followed' : '';
  return { delivered: false, status, reason: 'refused', error: `the answer was ${status}${note}`, pauseMs };
}
