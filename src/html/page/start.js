/* start.js - memshim's page. Plain functions in one script; what a report says is only ever shown as text. */
"use strict";
