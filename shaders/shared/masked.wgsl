// What stands for minus infinity, which a shader may not count on: a logit at or below it is masked.
const MASKED = -1e30;
