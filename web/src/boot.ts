// Begins to load the lab before all else: it is what takes longest, and the page comes meanwhile.

import { firstWorker } from "./first";

firstWorker();
void import("./main");
