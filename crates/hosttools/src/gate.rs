//! Stage 1: the gateway is off unless it was enabled.

use crate::config::{Config, Mode};
use crate::error::ToolError;

/// Returns whether anything may run at all.
pub(crate) fn open(config: &Config) -> Result<(), ToolError> {
    if config.mode == Mode::Disabled {
        return Err(ToolError::Disabled("the mode is 'disabled'".to_owned()));
    }
    if !config.enabled {
        return Err(ToolError::Disabled("set enabled = true, or WARDIAN_TOOLS_ENABLED=1".to_owned()));
    }
    Ok(())
}
