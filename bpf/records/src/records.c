/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Has the preprocessor expand every row of record.h into a call of a function that is none, which lib.rs reads. */
#include "../../record.h"

#define ENUMERATION(name, ROWS, about) onramp_enumeration(name, about) ROWS(onramp_value)
RECORD_ENUMERATIONS(ENUMERATION)
#define STRUCTURE(name, FIELDS) onramp_structure(name) FIELDS(onramp_field)
RECORD_STRUCTURES(STRUCTURE)
#define TABLE(name, ROWS, about) onramp_table(name, about) ROWS(onramp_column, onramp_fields)
RECORD_TABLES(TABLE)
