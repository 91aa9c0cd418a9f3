"""How good the answers are: sets of questions with known answers, put to a memory that is made for it."""
