/** The logger interface: levels, fields, and child loggers with fixed fields. */
export type LogFields = Readonly<Record<string, unknown>>;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

/** Drops every message. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

/**
 * Returns a logger for a thread or a process that leaves its lines to another one. Errors become the text of their stack, because
 * messages between processes carry no errors.
 * @param fixed fields of every line
 */
export function remoteLogger(
  write: (level: LogLevel, message: string, fields: LogFields) => void,
  fixed: LogFields = {},
): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      const { error, ...rest } = { ...fixed, ...fields };
      const stack = error instanceof Error ? { stack: error.stack } : error === undefined ? {} : { error };
      write(level, message, { ...rest, ...stack });
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => remoteLogger(write, { ...fixed, ...fields }),
  };
}
