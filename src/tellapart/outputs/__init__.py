"""Where captions go: .txt files beside pictures, a journal, COCO results, the pictures' own metadata.

All of it is written so that a kill at any moment loses nothing and doing it again changes nothing. The order
for a picture is: the journal first, then what can be made of it again.
"""
