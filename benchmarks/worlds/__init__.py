"""What loops reach of planted worlds (`support.worlds`), and what that costs them."""
