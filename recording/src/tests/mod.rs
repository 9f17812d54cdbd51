// SPDX-License-Identifier: MIT OR GPL-2.0-only
mod damage;
mod hostile;
mod nonsense;
mod private;
mod replay;
mod round_trip;
