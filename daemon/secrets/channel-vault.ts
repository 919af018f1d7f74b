/** Seals the configurations of notification channels: their addresses, tokens and signing secrets. */
import type { Row } from '../database/schema.js';
import type { Belonging, Keyring, Sealed } from './keyring.js';

export interface ChannelVaultOptions {
  readonly keyring: Keyring;
}

/** What a sealed configuration belongs to: a channel, and the version of its configuration. */
export type ChannelPlace = Pick<Row<'channels'>, 'channel_id' | 'row_version'>;

export class ChannelVault {
  private readonly keyring: Keyring;

  constructor({ keyring }: ChannelVaultOptions) {
    this.keyring = keyring;
  }

  seal(config: string, place: ChannelPlace): Sealed {
    return this.keyring.seal(config, belongingOf(place));
  }

  /** Throws `secrets_locked`. */
  open(row: Sealed & ChannelPlace): string {
    return this.keyring.open(row, belongingOf(row));
  }
}

const belongingOf = ({ channel_id, row_version }: ChannelPlace): Belonging => ({
  recordId: channel_id,
  name: `the configuration of channel ${channel_id}`,
  version: row_version,
});
